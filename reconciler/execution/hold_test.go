package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestWhatWouldBeMade: during a hold, a Work does not report that it would create an object that
// others have created in the member already.
func TestWhatWouldBeMade(t *testing.T) {
	const namespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"pro"}}`
	const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"pro","name":"web"}}`
	const overwrites = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"pro","name":"web","annotations":{"work.karmada.io/conflict-resolution":"overwrite"}}}`
	for name, tc := range map[string]struct {
		manifest string
		live     *unstructured.Unstructured
		want     string
	}{
		"a namespace that is not there": {namespace, nil, "held: would make Namespace pro"},
		"one that is there, and nobody's here": {namespace, parse(t, namespace),
			"Namespace pro already exists in the cluster and is not managed by Flotilla: it is used as it is, and stays when the one here goes"},
		"an object that is not there": {config, nil, "held: would make ConfigMap pro/web"},
		"one that is there, and nobody's here either": {config, parse(t, config),
			"ConfigMap pro/web already exists in the cluster and is not managed by Flotilla: set conflictResolution to Overwrite in the policy to take it over, with what it holds, or give one of the two another name"},
		"one that is there, and is to be taken over": {overwrites, parse(t, config), "held: would change ConfigMap pro/web"},
	} {
		t.Run(name, func(t *testing.T) {
			edge := &edge{presence: members.Absent, live: tc.live}
			p := testParts(edge, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
			p.opts.Hold = func(string) *hubclaim.Hold { return &hubclaim.Hold{} }
			w := p.worker("eu-1", elsewhere{})
			s := &state{key: workKey, work: testWork(tc.manifest), member: edge}
			if _, err := w.reader.connect(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, err := w.applier.apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := s.objects[0].failed; err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it says (-want +got):\n%s", diff)
			}
			if edge.sent != nil {
				t.Errorf("it was sent: %v", edge.sent)
			}
		})
	}
}
