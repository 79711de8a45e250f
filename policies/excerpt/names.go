package excerpt

import (
	"fmt"
	"strings"
)

// Names lists names in one line, as in "a, b and 3 more": the first of them, at most most, and how many follow.
func Names(names []string, most int) string {
	more := len(names) - most
	if more <= 0 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
}
