package inspection

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatRunsInMembersAlone: who asks the control plane for pods is told where they are, and nobody else is.
func TestWhatRunsInMembersAlone(t *testing.T) {
	for args, want := range map[string]string{
		"pods": "pods", "po": "po", "Nodes": "Nodes", "pod/web": "pod", "deployments": "", "pods,services": "", "pods web": "", "": "",
	} {
		if got := runsInMembers(strings.Fields(args)); got != want {
			t.Errorf("get %s: %q, want %q", args, got, want)
		}
	}
	for said, want := range map[string]bool{"No resources found in default namespace.\n": true, "No resources found\n": true, "Warning: v1 Endpoints is deprecated\n": false} {
		var out strings.Builder
		heard := &noneHeard{Writer: &out}
		_, _ = fmt.Fprint(heard, said)
		if heard.none != want || out.String() != said {
			t.Errorf("%q: none %v, passed on %q", said, heard.none, out.String())
		}
	}
}
