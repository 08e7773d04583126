"""What every page uses: frame, state, forms, tables, charts; assets/style.css: spacing, colours, phone layout."""
