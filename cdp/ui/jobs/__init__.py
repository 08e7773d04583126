"""The Jobs page, and jobs as other pages show them."""
