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

// noCluster is printed where the clusters were asked for, and there is none.
const noCluster = "There is no cluster in the fleet: flotilla join NAME --cluster-kubeconfig FILE adds one."

// none returns a line that no objects were found, as kubectl prints it: in a namespace, or, if that is
// empty, anywhere. servers is how many were asked.
func none(servers int, namespace string) string {
	switch {
	case servers == 0:
		return noCluster
	case namespace != "":
		return "No resources found in " + namespace + " namespace."
	default:
		return "No resources found"
	}
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
