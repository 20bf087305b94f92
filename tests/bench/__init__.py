"""Speed, as ratios of one run: what deciding costs. Nothing here fails on a clock."""
