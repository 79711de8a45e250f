package inspection

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// noneHeard passes on what is written, and takes note where that is that there is nothing.
type noneHeard struct {
	io.Writer
	none bool
}

// Write writes.
func (n *noneHeard) Write(data []byte) (int, error) {
	n.none = n.none || bytes.HasPrefix(data, []byte("No resources found"))
	return n.Writer.Write(data)
}

// runsInMembers returns the kind that is asked for if there is none of it on a control plane, which runs nothing itself; empty
// for others.
func runsInMembers(args []string) string {
	if len(args) != 1 {
		return ""
	}
	kind, _, _ := strings.Cut(args[0], "/")
	if slices.Contains([]string{"pods", "pod", "po", "nodes", "node", "no"}, strings.ToLower(kind)) {
		return kind
	}
	return ""
}
