package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/seal"
)

// TestRecordsOfOthers: somebody who can write a Work's status, as with a stolen token of an agent,
// cannot keep a change from the member by recording it as applied.
func TestRecordsOfOthers(t *testing.T) {
	own := seal.New([]byte("own"))
	plain := []workv1alpha1.AppliedHash{{Desired: members.Hash([]byte(manifestText)), Observed: "owned"}}
	for name, tc := range map[string]struct {
		record []workv1alpha1.AppliedHash
		asked  []string
	}{
		"its own is believed":       {own.Closed(plain), nil},
		"one without proof is not":  {plain, []string{"apply web"}},
		"one proven by others, too": {seal.New([]byte("other")).Closed(plain), []string{"apply web"}},
	} {
		t.Run(name, func(t *testing.T) {
			member := &edge{presence: members.Present, observed: ours(asIs)}
			p := testParts(member, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			p.opts.Seal = own
			w := p.worker("eu-1", elsewhere{})
			work := testWork(manifestText)
			work.Status.Applied = tc.record
			s := &state{key: workKey, work: work, member: member}
			for _, phase := range []func() error{
				func() error { _, err := w.reader.connect(t.Context(), s); return err },
				func() error { _, err := w.applier.apply(t.Context(), s); return err },
				func() error { _, err := w.describer.computeStatus(t.Context(), s); return err },
			} {
				if err := phase(); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.asked, member.asked); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(own.Closed(plain), s.status.Applied); diff != "" {
				t.Errorf("the record (-want +got):\n%s", diff)
			}
		})
	}
}
