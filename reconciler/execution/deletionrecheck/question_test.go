package deletionrecheck_test

import (
	"errors"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
)

// site is what the agent of west knows: "web" is being deleted since second 100 by the hub's clock.
type site struct {
	*world
	clock   *clocktesting.FakePassiveClock
	returns *deletionrecheck.Returns
	judge   *deletionrecheck.Judge
	away    error
	since   time.Time
	skew    time.Duration
	woke    time.Time
}

func (s *site) Away() error         { return s.away }
func (s *site) Since() time.Time    { return s.since }
func (s *site) Skew() time.Duration { return s.skew }

// newSite returns one whose agent, hub and cluster have all been there since second 50. Second 101 is now.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{world: newWorld(t), clock: clocktesting.NewFakePassiveClock(time.Unix(101, 0))}
	s.west.Annotations[propagation.DigestAnnotation] = "digest"
	s.starts(50)
	return s
}

// starts has an agent start at a second, which has nothing in memory.
func (s *site) starts(second int64) {
	s.returns = &deletionrecheck.Returns{}
	s.judge = deletionrecheck.New(s.hub(), deletionrecheck.Options{Hub: s, Returns: s.returns, Clock: s.clock, Woke: func() time.Time { return s.woke }})
	s.back(second)
}

// back has the cluster answer the agent again since a second, and there the hub.
func (s *site) back(second int64)  { s.returns.Note("west", time.Unix(second, 0)) }
func (s *site) there(second int64) { s.since = time.Unix(second, 0) }

// passes has it be a second by the agent's clock.
func (s *site) passes(second int64) { s.clock.SetTime(time.Unix(second, 0)) }

// looks has the agent look at the Work, which reports what it asks, and returns what comes of it.
func (s *site) reconcile(t *testing.T) string {
	t.Helper()
	err := s.judge.Keeps(t.Context(), s.west, s.clusters["west"])
	switch {
	case err == nil:
		return "removed"
	case deletionrecheck.Waits(err):
		return "waits"
	case !deletionrecheck.Asks(err) || !deletionrecheck.Is(err):
		t.Fatal(err)
	}
	meta.SetStatusCondition(&s.west.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: deletionrecheck.Reason, Message: err.Error()})
	return "asks"
}

// confirms has the control plane answer what is asked.
func (s *site) confirms() {
	s.west.Annotations[workv1alpha2.RemovalConfirmedAnnotation] = deletionrecheck.Question(s.west)
}

// TestAnAgentAsks: what an agent was told while it, its cluster or its hub was away is done once the control plane has said so since all
// are there, and nothing else is asked.
func TestAnAgentAsks(t *testing.T) {
	gone := &url.Error{Op: "Delete", URL: "https://west", Err: syscall.ECONNREFUSED}
	for name, tc := range map[string]struct {
		happens func(s *site)
		want    []string // at the first look, and at the second, after an answer
	}{
		"it was there all the time":                {func(*site) {}, []string{"removed"}},
		"it has started since":                     {func(s *site) { s.starts(120) }, []string{"asks", "removed"}},
		"its cluster was away":                     {func(s *site) { s.back(120) }, []string{"asks", "removed"}},
		"the hub was away":                         {func(s *site) { s.there(120) }, []string{"asks", "removed"}},
		"the hub is back since the same second":    {func(s *site) { s.there(100) }, []string{"asks", "removed"}},
		"the hub is back for long":                 {func(s *site) { s.there(97) }, []string{"removed"}},
		"the hub is away":                          {func(s *site) { s.away = errors.New("gone") }, []string{"waits", "waits"}},
		"it heard of it late, and noticed nothing": {func(s *site) { s.passes(108) }, []string{"asks", "removed"}},
		"it heard of it in time, and had much to do": {func(s *site) {
			s.passes(103)
			s.judge.Seen(s.west)
			s.passes(200)
		}, []string{"removed"}},
		"it heard of it in time, and was stopped before it removed it": {func(s *site) {
			s.passes(103)
			s.judge.Seen(s.west)
			s.passes(200)
			s.woke = time.Unix(200, 0)
		}, []string{"asks", "removed"}},
		"it was stopped long before":                      {func(s *site) { s.woke = time.Unix(80, 0) }, []string{"removed"}},
		"its clock is slow, and all else as it should be": {func(s *site) { s.skew = time.Hour; s.passes(101 - 3600); s.starts(50 - 3600) }, []string{"removed"}},
		"its clock is slow, and it has started since":     {func(s *site) { s.skew = time.Hour; s.passes(130 - 3600); s.starts(120 - 3600) }, []string{"asks", "removed"}},
		"its clock is fast, and all else as it should be": {func(s *site) { s.skew = -time.Hour; s.passes(101 + 3600); s.starts(50 + 3600) }, []string{"removed"}},
		"its cluster did not answer the removal":          {func(s *site) { s.judge.Tried(client.ObjectKeyFromObject(s.west), gone) }, []string{"asks", "removed"}},
		"its cluster refused the removal":                 {func(s *site) { s.judge.Tried(client.ObjectKeyFromObject(s.west), answered(403)) }, []string{"removed"}},
		"another Work of that name had failed": {func(s *site) {
			s.judge.Tried(client.ObjectKeyFromObject(s.west), gone)
			s.judge.Forget(client.ObjectKeyFromObject(s.west))
		}, []string{"removed"}},
		"an agent asked before it, in another life": {func(s *site) { kept(s.west, deletionrecheck.Reason) }, []string{"asks", "removed"}},
		"the objects stay anyway":                   {func(s *site) { s.starts(120); s.west.Spec.PreserveResourcesOnDeletion = ptr.To(true) }, []string{"removed"}},
		"it is wanted again":                        {func(s *site) { s.starts(120); s.west.Annotations[workv1alpha2.WantedAgainAnnotation] = "true" }, []string{"removed"}},
		"the copy served nobody when it was heard of last": {func(s *site) {
			s.starts(120)
			s.west.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
		}, []string{"asks", "removed"}},
		"the copy was never applied": {func(s *site) {
			s.starts(120)
			s.west.Status = workv1alpha1.WorkStatus{Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse}}}
		}, []string{"removed"}},
		"the agent stopped before it reported that it had applied it": {func(s *site) { s.starts(120); s.west.Status = workv1alpha1.WorkStatus{} }, []string{"asks", "removed"}},
		"the cluster leaves the fleet": {func(s *site) {
			s.starts(120)
			s.clusters["west"].DeletionTimestamp = &metav1.Time{Time: time.Unix(110, 0)}
		}, []string{"removed"}},
		"somebody wrote the Work by hand": {func(s *site) {
			s.starts(120)
			delete(s.west.Annotations, workv1alpha2.ResourceBindingNameAnnotationKey)
		}, []string{"removed"}},
		"another control plane wrote the Work":              {func(s *site) { s.starts(120); delete(s.west.Annotations, propagation.DigestAnnotation) }, []string{"removed"}},
		"another control plane wrote the Work, and is away": {func(s *site) { s.away = errors.New("gone"); delete(s.west.Annotations, propagation.DigestAnnotation) }, []string{"removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			tc.happens(s)
			var got []string
			for range tc.want {
				got = append(got, s.reconcile(t))
				s.confirms()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnAnswerOfBeforeCountsNoMore: who was away once more asks once more.
func TestAnAnswerOfBeforeCountsNoMore(t *testing.T) {
	for name, happens := range map[string]func(s *site){
		"the agent has started once more": func(s *site) { s.starts(140) },
		"the hub was away once more":      func(s *site) { s.there(140) },
		"it was stopped for a while":      func(s *site) { s.woke = time.Unix(140, 0) },
		"its cluster was away once more":  func(s *site) { s.back(140) },
		"the cluster did not answer":      func(s *site) { s.passes(140); s.judge.Tried(client.ObjectKeyFromObject(s.west), answered(503)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.starts(120)
			got := []string{s.reconcile(t), s.reconcile(t)}
			s.confirms()
			happens(s)
			got = append(got, s.reconcile(t), s.reconcile(t))
			s.confirms()
			got = append(got, s.reconcile(t))
			if diff := cmp.Diff([]string{"asks", "asks", "asks", "asks", "removed"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
