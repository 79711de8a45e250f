package propagation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func TestClusterFaults(t *testing.T) {
	many := propagation.ClusterFaults{}
	for i := range 12 {
		many[fmt.Sprintf("c%02d", i)] = fmt.Sprint("fault ", i)
	}
	for name, tc := range map[string]struct {
		faults propagation.ClusterFaults
		want   string
		read   propagation.ClusterFaults
	}{
		"none": {},
		"one of several clusters is said once": {
			propagation.ClusterFaults{"west": "it does not fit", "east": "it does not fit", "far": "too much"},
			`[{"fault":"it does not fit","clusters":["east","west"]},{"fault":"too much","clusters":["far"]}]`,
			propagation.ClusterFaults{"west": "it does not fit", "east": "it does not fit", "far": "too much"},
		},
		"a long one is cut": {
			propagation.ClusterFaults{"a": strings.Repeat("x", 2*propagation.MaxFault)},
			`[{"fault":"` + strings.Repeat("x", propagation.MaxFault-len("…")) + `…","clusters":["a"]}]`,
			propagation.ClusterFaults{"a": strings.Repeat("x", propagation.MaxFault-len("…")) + "…"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.faults.Text()
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			b := &workv1alpha2.ResourceBinding{}
			b.Annotations = map[string]string{propagation.ClusterFaultsAnnotation: text}
			if diff := cmp.Diff(tc.read, propagation.ClusterFaultsOf(b)); diff != "" {
				t.Errorf("read again (-want +got):\n%s", diff)
			}
		})
	}

	b := &workv1alpha2.ResourceBinding{}
	b.Annotations = map[string]string{propagation.ClusterFaultsAnnotation: many.Text()}
	if got := propagation.ClusterFaultsOf(b); len(got) != 12 || got["c07"] != "fault 7" || got["c11"] != "see the Events of its binding" {
		t.Errorf("of many it says %v", got)
	}
	b.Annotations[propagation.ClusterFaultsAnnotation] = "{"
	if got := propagation.ClusterFaultsOf(b); got != nil {
		t.Errorf("what cannot be read says %v", got)
	}
}
