package eviction_test

import (
	"strings"
	"testing"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

// TestLeft checks the text that users see when clusters have been left.
func TestLeft(t *testing.T) {
	tainted := workv1alpha2.GracefulEvictionTask{FromCluster: "a", Producer: "TaintManager", Reason: "TaintUntolerated", Message: "untolerated taint {x:NoExecute}"}
	asked := workv1alpha2.GracefulEvictionTask{FromCluster: "b", Producer: "somebody", Reason: "Maintenance"}
	silent := workv1alpha2.GracefulEvictionTask{FromCluster: "d", Producer: "somebody"}
	better := moved("e", "c is healthy", "e")
	cases := map[string]struct {
		ended, runs, ready, want string
	}{
		"a taint":                            {"a", "c", "c", "Left cluster a (untolerated taint {x:NoExecute}) for {c:1}"},
		"a reason of somebody, and no words": {"b", "c", "c", "Left cluster b (Maintenance) for {c:1}"},
		"no reason at all":                   {"d", "c", "c", "Left cluster d for {c:1}"},
		"another place was better":           {"e", "c", "c", "Left cluster e for {c:1}"},
		"several":                            {"e b a", "c", "c", "Left clusters a (untolerated taint {x:NoExecute}), b (Maintenance), e for {c:1}"},
		"many":                               {"a f g h i j k", "c", "c", "Left clusters a (untolerated taint {x:NoExecute}), f, g, h, i and 2 more for {c:1}"},
		"it does well nowhere":               {"a", "c d", "", "Left cluster a (untolerated taint {x:NoExecute}) for {c:1, d:1}, where it is not healthy yet"},
		"it does well in one of two":         {"d", "c d", "d", "Left cluster d for {c:1, d:1}; it is not healthy yet in c"},
		"in few of many":                     {"d", "c d e f g h i", "d", "Left cluster d for {c:1, d:1, e:1, f:1, g:1, h:1, i:1}; it is not healthy yet in c, e, f, g, h and 1 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets(tc.runs), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{tainted, asked, silent, better}}
			place := "{" + strings.ReplaceAll(tc.runs, " ", ":1, ") + ":1}"
			got := eviction.Left(spec, strings.Fields(tc.ended), place, func(cluster string) bool { return strings.Contains(tc.ready, cluster) })
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
