package wording

// GoesTo returns what a row says of the clusters of a Kustomization: outside, those that are counted, or a dash where it goes to none.
func GoesTo(outside string, total int, counted string) string {
	switch {
	case outside != "":
		return "outside"
	case total == 0:
		return "-"
	}
	return counted
}
