package rulefile

// nearest returns the candidate that takes the fewest edits from word, at most
// a quarter of its length, or "".
func nearest(word string, candidates []string) string {
	best, least := "", 0
	if len(word) > 100 {
		return ""
	}
	for _, c := range candidates {
		if d := edits(word, c); d <= max(1, len(c)/4) && (best == "" || d < least) {
			best, least = c, d
		}
	}
	return best
}

// edits is the number of insertions, deletions and replacements between a and
// b (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
