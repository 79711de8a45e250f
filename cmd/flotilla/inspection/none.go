package inspection

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// noneHeard passes on what is written, and records whether kubectl reports that nothing was found.
type noneHeard struct {
	io.Writer
	none bool
}

// Write writes.
func (n *noneHeard) Write(data []byte) (int, error) {
	n.none = n.none || bytes.HasPrefix(data, []byte("No resources found"))
	return n.Writer.Write(data)
}

// runsInMembers returns the requested kind if it is pods or nodes, of which a control plane has none because it runs
// nothing itself; empty for other kinds.
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
