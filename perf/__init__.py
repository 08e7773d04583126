"""Speed against peers, one file per question. ``make bench`` runs all of them."""
