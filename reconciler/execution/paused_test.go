package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

// TestWhatIsNotPutBackIsNotApplied: while drift is not corrected, because
// the member refuses that, or the object is changed again each time, the Work does not count as
// applied, also while the next try waits.
func TestWhatIsNotPutBackIsNotApplied(t *testing.T) {
	drifted := func(refuse error) edge {
		return edge{presence: members.Present, observed: ours(func(o *members.Observed) { o.Owned = "drifted" }), live: parse(t, manifestText), refuse: refuse}
	}
	for name, tc := range map[string]struct {
		edge edge
		want []string // part of why it is not applied, by pass; empty if it is
	}{
		"refused each time":       {drifted(errors.New("denied by a webhook")), []string{"denied", "denied", "denied", "denied", "denied"}},
		"gone, and refused":       {edge{presence: members.Absent, refuse: errors.New("exceeded quota")}, []string{"quota", "quota", "quota", "quota", "quota"}},
		"changed again each time": {drifted(nil), []string{"", "", "", "changed again", "changed again"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := testWorker(&tc.edge, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
			work := testWork(manifestText)
			work.Status.Applied = []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(manifestText)), Observed: "owned"}}
			for i, want := range tc.want {
				s := &state{key: workKey, work: work, member: &tc.edge}
				if _, err := w.reader.connect(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				s.objects[0].record = work.Status.Applied[0] // as if somebody had changed it once more
				if _, err := w.applier.apply(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				c, known := applied(s)
				if good := c.Status == metav1.ConditionTrue; !known || good != (want == "") || !strings.Contains(c.Message, want) {
					t.Errorf("look %d: %+v, want %q", i, c, want)
				}
			}
		})
	}
}
