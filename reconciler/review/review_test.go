package review_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/codeowners"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/reconciler/forecast/rehearsal"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/review"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/git"
)

func hash(digit string) string { return strings.Repeat(digit, 40) }

// world is a forge, a repository and a control plane.
type world struct {
	t     *testing.T
	hub   client.WithWatch
	clock *clocktesting.FakePassiveClock
	loop  *review.Reconciler

	mu sync.Mutex
	// pulls are open; told is what the forge was told, in order.
	pulls []forge.PullRequest
	told  []string
	// comments are their latest texts, by pull request.
	comments map[int64]string
	// refuses returns why the forge refuses something; nil for nothing.
	refuses func(what string) error
	// commits are files by hash, and refs hashes by name; bases are what MergeBase says of a branch.
	commits map[string]artifact.Files
	refs    map[string]string
	bases   map[string]string
	// missing are commits that cannot be fetched.
	missing map[string]error
	// writers have set the label of a pull request, or not.
	writers map[int64]bool
	read    []string // commits that were fetched
	// approvers approve of the present head of a pull request, and members are in a team, as TEAM LOGIN; asked counts the questions.
	approvers map[int64][]string
	members   map[string]bool
	asked     int
	said      map[int64][]forge.Said // comments by pull request
	listened  int
	answers   []string
	owners    map[string]string // CODEOWNERS by commit
	// parents are first parents of commits, and merged pull requests by the commit that there is by their merge.
	parents map[string]string
	merged  map[string]forge.PullRequest
}

// text is the file of a commit: a ConfigMap and the policy that places it.
func text(data string) artifact.Files {
	return artifact.Files{"app/web.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: app}\ndata:\n" + data +
		"---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: app}\n" +
		"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [eu-1, us-1]}}}\n")}}
}

const lines = "  a: one\n  b: one\n  c: one\n"

func newWorld(t *testing.T, change func(*gitopsv1alpha1.PullRequestReview)) *world {
	t.Helper()
	w := &world{
		t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_900_000_000, 0)), comments: map[int64]string{}, refuses: func(string) error { return nil },
		commits: map[string]artifact.Files{hash("b"): text(lines), hash("1"): text(strings.Replace(lines, "a: one", "a: two", 1))},
		refs:    map[string]string{"main": hash("b"), "refs/pull/1/head": hash("1")}, bases: map[string]string{}, missing: map[string]error{},
		pulls: []forge.PullRequest{{Number: 1, Head: hash("1"), Ref: "refs/pull/1/head", Base: "main"}},
	}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "app"}}
	ks.Spec.Prune, ks.Spec.Path = true, "./app"
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
	object := &gitopsv1alpha1.PullRequestReview{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "fleet", UID: "uid", Generation: 1}, Spec: gitopsv1alpha1.PullRequestReviewSpec{
		SourceRef: gitopsv1alpha1.ReviewedSource{Name: "fleet"}, ProviderRef: gitopsv1alpha1.LocalReference{Name: "forge"}, Interval: metav1.Duration{Duration: time.Minute}, Context: "flotilla/review",
	}}
	if change != nil {
		change(object)
	}
	objects := []client.Object{
		ks, object, &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "fleet"}, Spec: sourcev1.GitRepositorySpec{Reference: &sourcev1.GitRepositoryRef{Branch: "main"}}},
		&notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "forge"}, Spec: notificationv1beta3.ProviderSpec{Type: "gitea", Address: "https://forge.example.com/org/repo", SecretRef: &meta.LocalObjectReference{Name: "token"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "token"}, Data: map[string][]byte{"token": []byte("t")}},
	}
	for _, name := range []string{"eu-1", "us-1"} {
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": name[:2]}}, Status: clusterv1alpha1.ClusterStatus{
			Conditions:     []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
			APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}}},
		}})
	}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), apimeta.RESTScopeNamespace)
	w.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithStatusSubresource(object).WithRESTMapper(mapper).Build()
	w.start()
	return w
}

// start starts the loop, as after a restart.
func (w *world) start() {
	means := rehearsal.Means{Hub: w.hub, Mapper: w.hub.RESTMapper(), Machine: lua.New(lua.Options{Now: time.Now, Time: time.Minute}), Builder: build.New(build.Limits{}), Brake: inventory.DefaultBrake()}
	w.loop = review.New(review.Deps{
		Hub: w.hub, Live: w.hub,
		Open:    func(context.Context, *sourcev1.GitRepository) (review.Repository, error) { return w, nil },
		Connect: func(forge.Provider, time.Duration) (review.Forge, error) { return w, nil },
		Fleet:   func(ctx context.Context) (*rehearsal.Fleet, error) { return rehearsal.Read(ctx, means, w.clock.Now()) },
	}, review.Options{Clock: w.clock, Limits: review.Limits{Open: 3}})
}

func (w *world) PullRequests(context.Context) ([]forge.PullRequest, bool, error) {
	return slices.Clone(w.pulls), true, w.refuses("list")
}

func (w *world) Merged(_ context.Context, commit, branch string) (forge.PullRequest, bool, error) {
	pull, is := w.merged[commit]
	return pull, is && pull.Base == branch, w.refuses("merged")
}

func (w *world) Line(_ context.Context, before string, now git.Commit) ([]string, error) {
	var out []string
	for at := now.Hash; at != before; at = w.parents[at] {
		if at == "" {
			return nil, nil
		}
		out = append([]string{at}, out...)
	}
	return out, nil
}

func (w *world) LabelledByWriter(_ context.Context, number int64, _ string) (bool, error) {
	return w.writers[number], w.refuses("labelled")
}

func (w *world) Unlabel(_ context.Context, number int64, label string) error {
	w.told = append(w.told, fmt.Sprintf("unlabel %d %s", number, label))
	if err := w.refuses("unlabel"); err != nil {
		return err
	}
	for i := range w.pulls {
		if w.pulls[i].Number == number {
			w.pulls[i].Labels = nil
		}
	}
	return nil
}

func (w *world) Approvers(_ context.Context, number int64, _ string) ([]forge.Approver, error) {
	w.asked++
	if err := w.refuses("approvers"); err != nil {
		return nil, err
	}
	var out []forge.Approver
	for _, login := range w.approvers[number] {
		out = append(out, forge.Approver{Login: login})
	}
	return out, nil
}

func (w *world) CodeOwners(_ context.Context, commit string) (codeowners.Kind, string, error) {
	return codeowners.GitHub, w.owners[commit], w.refuses("owners")
}

func (w *world) Said(_ context.Context, number int64, since time.Time) ([]forge.Said, error) {
	w.listened++
	var out []forge.Said
	for _, one := range w.said[number] {
		if !one.At.Before(since) {
			out = append(out, one)
		}
	}
	return out, w.refuses("said")
}

func (w *world) SaidByWriter(_ context.Context, what forge.Said) (bool, error) {
	return what.ID%2 == 0, w.refuses("writer") // an odd one is by somebody else
}

func (w *world) InTeam(_ context.Context, team string, who forge.Approver) (bool, error) {
	return w.members[team+" "+who.Login], w.refuses("team")
}

func (w *world) Post(_ context.Context, s forge.Status) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refuses("status"); err != nil {
		return err
	}
	w.told = append(w.told, fmt.Sprintf("%s %s %s: %s", s.Context, s.Commit[:1], s.State, s.Description))
	return nil
}

func (w *world) Comment(_ context.Context, c forge.Comment) (forge.CommentRef, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refuses("comment"); err != nil {
		return forge.CommentRef{}, err
	}
	if strings.Contains(c.Key, "/command/") {
		w.told = append(w.told, fmt.Sprintf("answer on %d", c.At.PullRequest))
		w.answers = append(w.answers, c.Body)
		return forge.CommentRef{PullRequest: c.At.PullRequest, ID: 500}, nil
	}
	what := "comment"
	if c.At.ID != 0 {
		what = "edit"
	}
	w.told = append(w.told, fmt.Sprintf("%s on %d", what, c.At.PullRequest))
	w.comments[c.At.PullRequest] = c.Body
	return forge.CommentRef{PullRequest: c.At.PullRequest, ID: 100 + c.At.PullRequest}, nil
}

func (w *world) Resolve(_ context.Context, ref git.Ref) (git.Commit, error) {
	found, is := w.refs[ref.Branch+ref.Name]
	if !is {
		return git.Commit{}, git.ErrRefNotFound
	}
	return git.Commit{Hash: found}, nil
}

func (w *world) MergeBase(_ context.Context, onto, branch git.Commit) (string, error) {
	if base, is := w.bases[branch.Hash]; is {
		return base, nil
	}
	return onto.Hash, nil
}

func (w *world) Files(_ context.Context, of git.Commit) (artifact.Files, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = append(w.read, of.Hash[:1])
	return w.commits[of.Hash], w.missing[of.Hash]
}

// pass reconciles once, and returns what the forge was told, and when the loop comes back.
func (w *world) pass() ([]string, time.Duration) {
	w.t.Helper()
	w.told = nil
	result, err := w.loop.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "flux", Name: "fleet"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.told, result.RequeueAfter
}

// wants checks what one pass tells the forge.
func (w *world) wants(why string, want ...string) time.Duration {
	w.t.Helper()
	got, after := w.pass()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("%s: the forge is told (-want +got):\n%s", why, diff)
	}
	return after
}

func (w *world) status() gitopsv1alpha1.PullRequestReviewStatus {
	w.t.Helper()
	object := &gitopsv1alpha1.PullRequestReview{}
	if err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "flux", Name: "fleet"}, object); err != nil {
		w.t.Fatal(err)
	}
	return object.Status
}

// phases returns number, phase and message of each pull request, and the condition.
func (w *world) phases() []string {
	w.t.Helper()
	status := w.status()
	var out []string
	for _, p := range status.PullRequests {
		out = append(out, fmt.Sprintf("%d %s: %s", p.Number, p.Phase, p.Message))
	}
	for _, c := range status.Conditions {
		out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

func (w *world) wantPhases(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.phases()); diff != "" {
		w.t.Fatalf("status (-want +got):\n%s", diff)
	}
}

const updated = "1 object changes in 2 clusters: 2 updated"

func TestAReviewIsToldOnce(t *testing.T) {
	w := newWorld(t, nil)
	if after := w.wants("a new pull request", "comment on 1", "flotilla/review 1 success: "+updated); after != time.Minute {
		t.Errorf("comes back after %s", after)
	}
	if body := w.comments[1]; !strings.Contains(body, "**"+updated+"**") || !strings.Contains(body, "-  a: one\n+  a: two") {
		t.Errorf("comment:\n%s", body)
	}
	w.wantPhases("1 Passed: "+updated, "Ready True Succeeded: pull requests: 1 passed")
	w.wants("nothing is new")
	w.start()
	w.wants("after a restart")
	w.pulls = nil
	w.wants("it is closed")
	w.wantPhases("Ready True Succeeded: no pull request is open")
}

// TestTheForgeIsAskedOnceMore: the list of a forge may not show at once what its webhook tells.
func TestTheForgeIsAskedOnceMore(t *testing.T) {
	w := newWorld(t, nil)
	w.pass()
	source := &sourcev1.GitRepository{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: "flux", Name: "fleet"}, source); err != nil {
		t.Fatal(err)
	}
	source.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	if err := w.hub.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	for _, want := range []time.Duration{2 * time.Second, time.Minute} {
		if after := w.wants("a Receiver tells of a change"); after != want {
			t.Errorf("comes back after %s, want %s", after, want)
		}
	}
}

func TestOutdatedIsNeverGreen(t *testing.T) {
	w := newWorld(t, nil)
	w.pass()
	w.commits[hash("c")], w.refs["main"] = text(lines+"  d: one\n"), hash("c")
	w.bases[hash("1")] = hash("b")
	w.wants("the branch moves", "flotilla/review 1 pending: main has changed: to be looked at again", "edit on 1", "flotilla/review 1 success: "+updated)

	cluster := &clusterv1alpha1.Cluster{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Name: "eu-1"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Labels["region"] = "us"
	if err := w.hub.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if after := w.wants("the fleet changes", "flotilla/review 1 pending: the fleet has changed: to be looked at again"); after != 10*time.Second {
		t.Errorf("looks whether the fleet has settled after %s", after)
	}
	w.wants("it has settled", "edit on 1", "flotilla/review 1 success: "+updated)
	w.wants("once")

	w.commits[hash("2")], w.refs["refs/pull/1/head"] = text(strings.Replace(lines, "b: one", "b: two", 1)), hash("2")
	w.bases[hash("2")] = hash("b")
	if after := w.wants("the list is older than the repository, as somebody pushes"); after != time.Minute {
		t.Errorf("comes back after %s", after)
	}
	w.pulls[0].Head = hash("2")
	w.wants("another head", "edit on 1", "flotilla/review 2 success: "+updated)
	w.wants("once")
}

func TestAListThatIsNewerThanTheRef(t *testing.T) {
	w := newWorld(t, nil)
	w.pulls[0].Head = hash("2")
	if after := w.wants("the ref is older than the list"); after != time.Second {
		t.Errorf("comes back after %s", after)
	}
	w.wantPhases("1 Pending: has changed meanwhile", "Ready True Succeeded: pull requests: 1 pending")
}

func TestWhatCannotPass(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		spec   func(*gitopsv1alpha1.PullRequestReview)
		want   []string
		phase  string
		reads  string
	}{
		"one of a fork is not looked at": {
			change: func(w *world) { w.pulls[0].Fork = true },
			want:   []string{"flotilla/review 1 pending: from a fork, which is not reviewed: push it to a branch of the repository itself"},
			phase:  "1 NotReviewed: from a fork, which is not reviewed: push it to a branch of the repository itself",
		},
		"one that conflicts": {
			change: func(w *world) {
				w.commits[hash("c")], w.refs["main"] = text(strings.Replace(lines, "a: one", "a: three", 1)), hash("c")
				w.bases[hash("1")] = hash("b")
			},
			want:  []string{"comment on 1", "flotilla/review 1 failure: conflicts with main: merge or rebase"},
			phase: "1 Failed: conflicts with main: merge or rebase", reads: "1bc",
		},
		"one that does not build, with the line": {
			change: func(w *world) {
				w.commits[hash("1")] = artifact.Files{"app/web.yaml": {Data: []byte("a: b\n c: [")}}
			},
			want:  []string{"comment on 1", "flotilla/review 1 failure: Kustomization flux/app: it cannot be built, and keeps what it has: app/web.yaml: invalid manifest: line 2: mapping values are not allowed i…"},
			phase: "1 Failed: Kustomization flux/app: it cannot be built, and keeps what it has: app/web.yaml: invalid manifest: line 2: mapping values are not allowed i…", reads: "1b",
		},
		"one that breaks a rule": {
			spec: func(o *gitopsv1alpha1.PullRequestReview) {
				o.Spec.Rules = []gitopsv1alpha1.ReviewRule{{Name: "eu-is-frozen", Expression: `comparison.changes.all(c, c.clusters.all(n, clusters[n].region != "eu"))`, Message: "ask the team of eu"}}
			},
			want:  []string{"comment on 1", "flotilla/review 1 failure: breaks the rule eu-is-frozen: " + updated},
			phase: "1 Failed: breaks the rule eu-is-frozen: " + updated, reads: "1b",
		},
		"one that is too large": {
			change: func(w *world) { w.missing[hash("1")] = fmt.Errorf("more than 10 files: %w", artifact.ErrTooLarge) },
			want:   []string{"comment on 1", "flotilla/review 1 failure: more than 10 files: too large"},
			phase:  "1 Failed: more than 10 files: too large", reads: "1b",
		},
		"one into another branch is nobody's": {
			change: func(w *world) { w.pulls[0].Base = "other" },
		},
		"one that is merged already changes nothing": {
			change: func(w *world) { w.bases[hash("1")] = hash("1") },
			want:   []string{"comment on 1", "flotilla/review 1 success: Nothing changes in any cluster."},
			phase:  "1 Passed: Nothing changes in any cluster.", reads: "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			if tc.change != nil {
				tc.change(w)
			}
			w.wants("first", tc.want...)
			if tc.phase != "" && w.phases()[0] != tc.phase {
				t.Errorf("status %q, want %q", w.phases()[0], tc.phase)
			}
			slices.Sort(w.read)
			if got := strings.Join(w.read, ""); got != tc.reads {
				t.Errorf("read the commits %q, want %q", got, tc.reads)
			}
			w.wants("once")
		})
	}
}

// TestNoneDelaysAnother: what keeps one from being reviewed keeps no other.
func TestNoneDelaysAnother(t *testing.T) {
	w := newWorld(t, nil)
	for _, n := range []string{"2", "3", "4"} {
		w.refs["refs/pull/"+n+"/head"], w.commits[hash(n)] = hash(n), w.commits[hash("1")]
		w.pulls = append(w.pulls, forge.PullRequest{Number: int64(n[0] - '0'), Head: hash(n), Ref: "refs/pull/" + n + "/head", Base: "main"})
	}
	w.missing[hash("1")] = errors.New("connection refused")
	const later = "flotilla/review 1 pending: cannot be looked at now, and is tried again: see the PullRequestReview fleet"
	w.wants("one of three cannot be fetched", later, "comment on 2", "comment on 3", "flotilla/review 2 success: "+updated, "flotilla/review 3 success: "+updated)
	w.wantPhases("1 Pending: connection refused", "2 Passed: "+updated, "3 Passed: "+updated,
		"Ready False NotTold: more than 3 pull requests are open: those that were opened last are not reviewed (and 1 more)")
	w.missing = map[string]error{}
	w.wants("it can be", "comment on 1", "flotilla/review 1 success: "+updated)
}

func TestAForgeThatRefuses(t *testing.T) {
	limited := &forge.RateLimitError{After: 5 * time.Minute}
	for name, tc := range map[string]struct {
		what  string
		err   error
		ready string
		after time.Duration
	}{
		"lists":                 {"list", forge.ErrUnauthorized, "Ready False Refused: access denied", time.Minute},
		"is down":               {"list", errors.New("connection refused"), "Ready False Unreachable: connection refused", time.Minute},
		"lists, for a while":    {"list", limited, "Ready False Unreachable: rate limit reached, try again in 5m0s", 5 * time.Minute},
		"comments":              {"comment", forge.ErrUnauthorized, "Ready False Refused: pull request 1: access denied", time.Minute},
		"statuses, for a while": {"status", limited, "Ready False Unreachable: pull request 1: rate limit reached, try again in 5m0s", 5 * time.Minute},
		"statuses":              {"status", forge.ErrStatus, "Ready False Refused: pull request 1: status refused", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.refuses = func(what string) error {
				if what == tc.what {
					return tc.err
				}
				return nil
			}
			_, after := w.pass()
			phases := w.phases()
			if ready := phases[len(phases)-1]; ready != tc.ready || after != tc.after {
				t.Errorf("%q after %s; want %q after %s", ready, after, tc.ready, tc.after)
			}
			w.refuses = func(string) error { return nil }
			w.pass()
			w.wantPhases("1 Passed: "+updated, "Ready True Succeeded: pull requests: 1 passed")
		})
	}
}

func TestWhatAPersonHasToMend(t *testing.T) {
	for name, tc := range map[string]struct {
		spec  func(*gitopsv1alpha1.PullRequestReview)
		ready string
		after time.Duration
	}{
		"a source that is not there":   {func(o *gitopsv1alpha1.PullRequestReview) { o.Spec.SourceRef.Name = "x" }, "Ready False SourceNotReady: the GitRepository x does not exist: create it, or correct spec.sourceRef", time.Minute},
		"a Provider that is not there": {func(o *gitopsv1alpha1.PullRequestReview) { o.Spec.ProviderRef.Name = "x" }, "Ready False ProviderNotReady: the Provider x does not exist: create it, or correct spec.providerRef", time.Minute},
		"it is suspended":              {func(o *gitopsv1alpha1.PullRequestReview) { o.Spec.Suspend = true }, "Ready False Suspended: suspended: pull requests stay as they are", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			if after := w.wants(name); after != tc.after {
				t.Errorf("comes back after %s", after)
			}
			w.wantPhases(tc.ready)
		})
	}
}

// TestForks: one of a fork is looked at once somebody who may write has labelled the very head that was seen without the label.
func TestForks(t *testing.T) {
	const (
		waits = "pending: from a fork: it is reviewed once somebody who may write to the repository sets the label safe"
		other = "pending: from a fork, with another head: who may write to the repository sets the label again"
	)
	w := newWorld(t, func(o *gitopsv1alpha1.PullRequestReview) { o.Spec.ForkLabel = "safe" })
	safe := []string{"safe"}
	w.pulls[0].Fork, w.pulls[0].Labels = true, safe
	w.wants("it comes with the label", "unlabel 1 safe", "flotilla/review 1 "+other)
	w.wants("the label is off", "flotilla/review 1 "+waits)
	w.wants("once")
	w.pulls[0].Labels, w.writers = safe, map[int64]bool{}
	w.wants("somebody who may not write sets it", "unlabel 1 safe", "flotilla/review 1 pending: from a fork: the label was set by somebody who may not write to the repository")
	w.wants("the label is off", "flotilla/review 1 "+waits)
	w.pulls[0].Labels = safe
	w.refuses = func(what string) error {
		return map[string]error{"labelled": errors.New("connection refused")}[what]
	}
	w.wants("it is not known who", "flotilla/review 1 pending: from a fork, and it cannot be found out now who has set the label")
	if len(w.read) > 0 {
		t.Fatalf("read %q", w.read)
	}
	w.writers[1], w.refuses = true, func(string) error { return nil }
	w.wants("somebody who may write did", "comment on 1", "flotilla/review 1 success: "+updated)
	w.wants("once")
	w.start()
	w.wants("after a restart")

	w.read = nil
	w.commits[hash("2")], w.refs["refs/pull/1/head"], w.pulls[0].Head = w.commits[hash("1")], hash("2"), hash("2")
	w.refuses = func(what string) error {
		return map[string]error{"unlabel": errors.New("connection refused")}[what]
	}
	for range 3 { // the label stays on, but says nothing of this head
		got, _ := w.pass()
		if len(got) == 0 || got[0] != "unlabel 1 safe" || len(w.read) > 0 {
			t.Fatalf("told %q, read %q", got, w.read)
		}
	}
	w.refuses = func(string) error { return nil }
	w.wants("it can be taken off", "unlabel 1 safe")
	w.wants("it waits", "flotilla/review 2 "+waits)
	w.pulls[0].Labels = safe
	w.wants("the new head is labelled", "edit on 1", "flotilla/review 2 success: "+updated)
	w.pulls[0].Labels = nil
	w.wants("the label is taken back", "flotilla/review 2 "+waits)
}

// TestTwoOfOneCommit: a commit has one status, which is green if all pull requests of it may be merged.
func TestTwoOfOneCommit(t *testing.T) {
	w := newWorld(t, func(o *gitopsv1alpha1.PullRequestReview) { o.Spec.Branches = []string{"main", "prod"} })
	w.refs["prod"], w.commits[hash("d")] = hash("d"), text(strings.Replace(lines, "a: one", "a: three", 1))
	w.bases[hash("1")] = hash("b")
	w.pulls = append(w.pulls, forge.PullRequest{Number: 2, Head: hash("1"), Ref: "refs/pull/1/head", Base: "prod"})
	w.wants("one passes, the other conflicts", "comment on 1", "comment on 2", "flotilla/review 1 failure: pull request 2: conflicts with prod: merge or rebase")
	w.wantPhases("1 Passed: "+updated, "2 Failed: conflicts with prod: merge or rebase", "Ready True Succeeded: pull requests: 1 passed, 1 failed")
	w.wants("once")
	w.pulls[1].Fork = true
	w.wants("a fork has the same commit", "flotilla/review 1 pending: pull request 2: from a fork, which is not reviewed: push it to a branch of the repository itself")
	w.wants("once")
	w.pulls[1].Fork = false
	w.commits[hash("e")], w.refs["prod"] = text(lines), hash("e")
	w.wants("both pass", "edit on 2", "flotilla/review 1 success: pull request 1: "+updated)
	w.wants("once")
	w.pulls = w.pulls[:1]
	w.wants("one is closed", "flotilla/review 1 success: "+updated)
}

// TestANewContext: a status of another name is one that the forge does not have.
func TestANewContext(t *testing.T) {
	w := newWorld(t, nil)
	w.pass()
	object := &gitopsv1alpha1.PullRequestReview{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: "flux", Name: "fleet"}, object); err != nil {
		t.Fatal(err)
	}
	object.Spec.Context = "other"
	if err := w.hub.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.wants("another context", "other 1 pending: the rules have changed: to be looked at again", "edit on 1", "other 1 success: "+updated)
}
