"""What every page uses: the frame, navigation, state, forms, tables, charts, text."""
