package inspection

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatRunsInMembersAlone: requests to the control plane for pods and nodes get a hint to the members, and no others.
func TestWhatRunsInMembersAlone(t *testing.T) {
	for args, want := range map[string]string{
		"pods": "pods", "po": "po", "Nodes": "Nodes", "pod/web": "pod", "deployments": "", "pods,services": "", "pods web": "", "": "",
	} {
		if got := runsInMembers(strings.Fields(args)); got != want {
			t.Errorf("get %s: %q, want %q", args, got, want)
		}
	}
	for output, want := range map[string]bool{"No resources found in default namespace.\n": true, "No resources found\n": true, "Warning: v1 Endpoints is deprecated\n": false} {
		var out strings.Builder
		heard := &noneHeard{Writer: &out}
		_, _ = fmt.Fprint(heard, output)
		if heard.none != want || out.String() != output {
			t.Errorf("%q: none %v, passed on %q", output, heard.none, out.String())
		}
	}
}

// TestNone: an empty fleet is distinguished from clusters without such objects.
func TestNone(t *testing.T) {
	for name, tc := range map[string]struct {
		servers         int
		namespace, want string
	}{
		"no cluster":      {0, "shop", "There is no cluster in the fleet: flotilla join NAME --cluster-kubeconfig FILE adds one."},
		"in a namespace":  {2, "shop", "No resources found in shop namespace."},
		"in no namespace": {2, "", "No resources found"},
	} {
		if got := none(tc.servers, tc.namespace); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestSourcesAreNamedAsElsewhere: reconcile and suspend have "source git", and so has get.
func TestSourcesAreNamedAsElsewhere(t *testing.T) {
	for args, want := range map[string]string{
		"source git": "gitrepositories.source.toolkit.fluxcd.io", "sources oci web": "ocirepositories.source.toolkit.fluxcd.io web",
		"source": "source", "sources all": "sources all", "deployment git": "deployment git",
	} {
		if got := strings.Join(followed(strings.Fields(args)), " "); got != want {
			t.Errorf("get %s: %q, want %q", args, got, want)
		}
	}
}
