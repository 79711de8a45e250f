package commitstatus

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

// rollout writes what becomes of a commit, which is other words each second until it succeeds, and returns after how many
// seconds each was written.
func rollout(t *testing.T, r *Reconciler, clock *clocktesting.FakePassiveClock, name, commit string, takes int) (written []int) {
	t.Helper()
	var have *gitopsv1alpha1.CommitStatus
	existing, err := r.statuses.of(t.Context(), "team", aboutKustomization(name))
	if err != nil {
		t.Fatal(err)
	}
	have = existing[name]
	for second := range takes + 1 {
		desired := &gitopsv1alpha1.CommitStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		desired.Spec = gitopsv1alpha1.CommitStatusSpec{
			KustomizationRef: &gitopsv1alpha1.LocalReference{Name: name}, Commit: commit, State: gitopsv1alpha1.CommitPending, Description: fmt.Sprintf("%d/%d clusters ready", second, takes),
		}
		if second == takes {
			desired.Spec.State = gitopsv1alpha1.CommitSuccess
		}
		wait, err := r.statuses.put(t.Context(), have, desired)
		if err != nil {
			t.Fatal(err)
		}
		if wait == 0 {
			written = append(written, second)
			if existing, err = r.statuses.of(t.Context(), "team", aboutKustomization(name)); err != nil {
				t.Fatal(err)
			}
			have = existing[name]
		}
		clock.SetTime(clock.Now().Add(time.Second))
	}
	return written
}

// TestTheLongerTheRarer: what becomes of a commit is told often at first, and the longer it takes the more rarely, but for its end.
func TestTheLongerTheRarer(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, Options{Clock: clock})
	want := "[0 10 20 30 40 54 72 96 128 171 228 304 406 526 646 766 886 900]"
	for _, commit := range []string{"1111", "2222"} { // the next one begins anew
		if got := fmt.Sprint(rollout(t, r, clock, "web", commit, 900)); got != want {
			t.Errorf("written after %s seconds, want %s", got, want)
		}
	}
}

// TestAnHourOfCommits: ten commits to a source that a hundred Kustomizations apply, each of which changes one of them and
// is rolled out until the next comes. GitHub takes 500 posts in an hour.
func TestAnHourOfCommits(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, Options{Clock: clock})
	posts := 0
	for i := range 10 {
		commit := fmt.Sprint("commit-", i)
		for _, context := range []string{"sum-of-the-source", fmt.Sprint("app-", i)} {
			posts += len(rollout(t, r, clock, context, commit, 350))
		}
	}
	if posts > 300 { // what else is posted has room
		t.Errorf("%d posts", posts)
	}
	t.Logf("%d posts", posts)
}

// TestADependencyIsWaitedForNoMore: that is told at once, as its name leads people astray; that it is waited for again is not.
func TestADependencyIsWaitedForNoMore(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, Options{Clock: clock})
	var written []string
	for _, description := range []string{"dependency team/base has not applied this commit yet", "0/2 clusters ready", "1/2 clusters ready", "dependency team/base is not ready"} {
		existing, err := r.statuses.of(t.Context(), "team", aboutKustomization("web"))
		if err != nil {
			t.Fatal(err)
		}
		desired := &gitopsv1alpha1.CommitStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
		desired.Spec = gitopsv1alpha1.CommitStatusSpec{KustomizationRef: &gitopsv1alpha1.LocalReference{Name: "web"}, Commit: "1111", State: gitopsv1alpha1.CommitPending, Description: description}
		wait, err := r.statuses.put(t.Context(), existing["web"], desired)
		if err != nil {
			t.Fatal(err)
		}
		if wait == 0 {
			written = append(written, description)
		}
		clock.SetTime(clock.Now().Add(time.Second))
	}
	if diff := cmp.Diff([]string{"dependency team/base has not applied this commit yet", "0/2 clusters ready"}, written); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}
