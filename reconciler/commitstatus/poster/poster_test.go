package poster

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/forge"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// tenants are namespaces that use one forge, each with a repository of its name.
type tenants struct {
	t      *testing.T
	hub    client.Client
	clock  *testclock.FakePassiveClock
	loop   *Reconciler
	writes int
	reads  int // of Secrets

	mu                sync.Mutex
	posts             []string
	reported, commits []string        // their descriptions, and the commits that they are of
	limits            map[string]bool // repositories that the forge wants no posts to
	gone              string          // a commit that the forge does not have any more
	forge             *httptest.Server
}

func newTenants(t *testing.T, opts Options, namespaces ...string) *tenants {
	w := &tenants{t: t, clock: testclock.NewFakePassiveClock(start), limits: map[string]bool{}}
	w.forge = httptest.NewServer(w)
	t.Cleanup(w.forge.Close)
	var objects []client.Object
	for _, namespace := range namespaces {
		objects = append(objects,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forge"}, Data: map[string][]byte{"token": []byte("t")}},
			&notificationv1beta3.Provider{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forge"},
				Spec:       notificationv1beta3.ProviderSpec{Type: "gitea", SecretRef: &meta.LocalObjectReference{Name: "forge"}},
			})
	}
	w.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithStatusSubresource(&gitopsv1alpha1.CommitStatus{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, secret := obj.(*corev1.Secret); secret {
					w.reads++
				}
				return c.Get(ctx, key, obj, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				w.writes++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	opts.Clock = w.clock
	opts.Egress = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	w.loop = New(w.hub, w.hub, opts)
	return w
}

func (w *tenants) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	repository, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/repos/acme/"), "/")
	if w.limits[repository] {
		out.Header().Set("Retry-After", "3600")
		out.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if w.gone != "" && strings.HasSuffix(r.URL.Path, w.gone) {
		out.WriteHeader(http.StatusNotFound)
		return
	}
	var status struct{ State, Description string }
	_ = json.NewDecoder(r.Body).Decode(&status)
	w.posts, w.reported = append(w.posts, repository+" "+status.State), append(w.reported, status.Description)
	w.commits = append(w.commits, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	out.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(out, "{}")
}

func (w *tenants) limit(namespace string, limited bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits[namespace] = limited
}

// reports sets what is to be posted to the forge, at a generation.
func (w *tenants) reports(namespace, name string, generation int64, commit string) {
	w.t.Helper()
	cs := &gitopsv1alpha1.CommitStatus{}
	err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cs)
	cs.Namespace, cs.Name, cs.Generation = namespace, name, generation
	cs.Spec = gitopsv1alpha1.CommitStatusSpec{
		ProviderRef: gitopsv1alpha1.LocalReference{Name: "forge"}, Repository: w.forge.URL + "/acme/" + namespace,
		Context: "kustomization/" + name, Commit: strings.Repeat(commit, 40), State: gitopsv1alpha1.CommitSuccess,
	}
	if err == nil {
		err = w.hub.Update(w.t.Context(), cs)
	} else {
		err = w.hub.Create(w.t.Context(), cs)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// outcome is what a run came to.
type outcome struct {
	After           time.Duration
	Synced, Reason  string
	Message, Posted string
	Seen            int64
	Writes          int
}

func (w *tenants) runs(namespace, name string) outcome {
	w.t.Helper()
	w.writes = 0
	key := client.ObjectKey{Namespace: namespace, Name: name}
	result, err := w.loop.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		w.t.Fatal(err)
	}
	var cs gitopsv1alpha1.CommitStatus
	if err := w.hub.Get(w.t.Context(), key, &cs); err != nil {
		w.t.Fatal(err)
	}
	out := outcome{After: result.RequeueAfter, Writes: w.writes, Seen: cs.Status.ObservedGeneration}
	if cs.Status.Posted != nil {
		out.Posted = cs.Status.Posted.Commit[:1]
	}
	for _, c := range cs.Status.Conditions {
		out.Synced, out.Reason, out.Message = string(c.Status), c.Reason, c.Message
	}
	return out
}

func (w *tenants) expect(what string, got, want outcome) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestAForgeThatTenantsShare: what one tenant gets from a forge, be it a limit or
// faults of its own making, keeps nobody else from posting there.
func TestAForgeThatTenantsShare(t *testing.T) {
	w := newTenants(t, Options{}, "loud", "quiet")
	w.limit("loud", true)
	w.reports("loud", "web", 1, "a")
	w.reports("quiet", "web", 1, "b")
	if got := w.runs("loud", "web"); got.After != time.Hour || got.Synced != "False" {
		t.Fatalf("the one who is limited: %+v, want no post for an hour", got)
	}
	w.expect("the other", w.runs("quiet", "web"), outcome{Synced: "True", Reason: "Posted", Message: "the forge knows", Posted: "b", Seen: 1, Writes: 1})
}

// TestAStatusThatWaitsForTheForge: what was not posted to the forge does not count as synced,
// and saying so takes one write; none if it can be posted at once.
func TestAStatusThatWaitsForTheForge(t *testing.T) {
	w := newTenants(t, Options{}, "team")
	w.reports("team", "web", 1, "a")
	w.expect("told at once", w.runs("team", "web"), outcome{Synced: "True", Reason: "Posted", Message: "the forge knows", Posted: "a", Seen: 1, Writes: 1})
	w.limit("team", true)
	w.reports("team", "other", 1, "a")
	w.runs("team", "other")

	w.reports("team", "web", 2, "b")
	waits := outcome{
		After: time.Hour, Synced: "Unknown", Reason: "WaitingForForge", Message: "waits for the forge until 2026-01-02T04:04:05Z",
		Posted: "a", Seen: 2, Writes: 1,
	}
	w.expect("a new commit", w.runs("team", "web"), waits)
	waits.Writes = 0
	before := w.reads
	w.expect("a second look", w.runs("team", "web"), waits)
	if w.reads != before {
		t.Errorf("who waits read Secrets %d times", w.reads-before)
	}

	w.limit("team", false)
	w.clock.SetTime(start.Add(time.Hour))
	w.expect("the wait is over", w.runs("team", "web"), outcome{Synced: "True", Reason: "Posted", Message: "the forge knows", Posted: "b", Seen: 2, Writes: 1})
}

// TestACommitThatIsGone: history was rewritten, and the forge does not know the commit any more that was pending:
// the next one is reported all the same.
func TestACommitThatIsGone(t *testing.T) {
	w := newTenants(t, Options{}, "team")
	w.reports("team", "web", 1, "a")
	cs := &gitopsv1alpha1.CommitStatus{}
	w.check(w.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, cs))
	cs.Spec.State = gitopsv1alpha1.CommitPending
	w.check(w.hub.Update(t.Context(), cs))
	w.runs("team", "web")
	w.gone = strings.Repeat("a", 40)
	w.reports("team", "web", 2, "b")
	w.expect("the next commit", w.runs("team", "web"), outcome{Synced: "True", Reason: "Posted", Message: "the forge knows", Posted: "b", Seen: 2, Writes: 1})
}

// TestTimeoutsOfProviders: a post gets the time that an answer takes at least, and
// none keeps a worker for hours.
func TestTimeoutsOfProviders(t *testing.T) {
	cases := map[string]struct{ asked, want time.Duration }{
		"none":       {want: 15 * time.Second},
		"nothing":    {asked: time.Nanosecond, want: time.Second},
		"an own one": {asked: 20 * time.Second, want: 20 * time.Second},
		"a day":      {asked: 24 * time.Hour, want: 5 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got time.Duration
			w := newTenants(t, Options{Connect: func(_ forge.Provider, timeout time.Duration) (forge.Poster, error) {
				got = timeout
				return nil, forge.ErrProvider
			}}, "team")
			var provider notificationv1beta3.Provider
			if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "forge"}, &provider); err != nil {
				t.Fatal(err)
			}
			if tc.asked != 0 {
				provider.Spec.Timeout = &metav1.Duration{Duration: tc.asked}
			}
			if err := w.hub.Update(t.Context(), &provider); err != nil {
				t.Fatal(err)
			}
			w.reports("team", "web", 1, "a")
			w.runs("team", "web")
			if got != tc.want {
				t.Errorf("timeout of a post: %s, want %s", got, tc.want)
			}
		})
	}
}

// TestWhatEndsIsClosed: a commit whose status is pending is reported before the CommitStatus goes, unless
// the forge cannot be reached, or does not answer for long.
func TestWhatEndsIsClosed(t *testing.T) {
	gone := func(w *tenants, namespace string) bool {
		err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &gitopsv1alpha1.CommitStatus{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err != nil
	}
	for name, tc := range map[string]struct {
		state    gitopsv1alpha1.CommitState
		provider bool // it is there
		limited  bool
		later    bool   // than the longest wait
		parent   string // what the one that applied the Kustomization attempted last; "holds": that holds it
		between  string // are gone, between that and the Kustomization
		follows  string // the name of the repository that its Kustomization follows by now
		says     string
		want     string
		gone     bool
	}{
		"one that is pending": {state: gitopsv1alpha1.CommitPending, provider: true, want: "team pending, team failure", gone: true},
		"one that has ended":  {state: gitopsv1alpha1.CommitSuccess, provider: true, want: "team success", gone: true},
		"the commit retires it": {
			state: gitopsv1alpha1.CommitPending, provider: true, parent: "main@sha1:" + strings.Repeat("a", 40), gone: true,
			want: "team pending, team success", says: "retired by this commit: what it applied is removed, or stays by its policy, or is applied by others",
		},
		"the commit retires it, and the one that applied it": {
			state: gitopsv1alpha1.CommitPending, provider: true, parent: "main@sha1:" + strings.Repeat("a", 40), between: "team/gone,", gone: true,
			want: "team pending, team success", says: "retired by this commit: what it applied is removed, or stays by its policy, or is applied by others",
		},
		"the commit retires it, which has failed as its folder is gone": {
			state: gitopsv1alpha1.CommitError, provider: true, parent: "main@sha1:" + strings.Repeat("a", 40), gone: true,
			want: "team failure, team success", says: "retired by this commit: what it applied is removed, or stays by its policy, or is applied by others",
		},
		"one that has failed, and is retired later": {
			state: gitopsv1alpha1.CommitFailure, provider: true, parent: "main@sha1:" + strings.Repeat("c", 40), want: "team failure", gone: true,
		},
		"a later commit retires it": {
			state: gitopsv1alpha1.CommitPending, provider: true, parent: "main@sha1:" + strings.Repeat("c", 40), gone: true,
			want: "team pending, team failure", says: "superseded by cccccccc, which retires the Kustomization",
		},
		"the commit has it follow another source": {
			state: gitopsv1alpha1.CommitPending, provider: true, parent: "main@sha1:" + strings.Repeat("a", 40), follows: "split", gone: true,
			want: "team pending, team success", says: "this commit has it follow GitRepository team/split",
		},
		"it follows another source by a later commit": {
			state: gitopsv1alpha1.CommitPending, provider: true, parent: "main@sha1:" + strings.Repeat("c", 40), follows: "split", gone: true,
			want: "team pending, team failure", says: "nothing more is told: it follows GitRepository team/split by now",
		},
		"somebody deletes it by hand":          {state: gitopsv1alpha1.CommitPending, provider: true, parent: "holds", want: "team pending"},
		"the Provider is gone":                 {state: gitopsv1alpha1.CommitPending, want: "team pending", gone: true},
		"the forge does not answer":            {state: gitopsv1alpha1.CommitPending, provider: true, limited: true, want: "team pending"},
		"the forge does not answer for longer": {state: gitopsv1alpha1.CommitPending, provider: true, limited: true, later: true, want: "team pending", gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTenants(t, Options{}, "team")
			w.reports("team", "web", 1, "a")
			cs := &gitopsv1alpha1.CommitStatus{}
			key := client.ObjectKey{Namespace: "team", Name: "web"}
			if err := w.hub.Get(t.Context(), key, cs); err != nil {
				t.Fatal(err)
			}
			cs.Spec.State, cs.Finalizers = tc.state, []string{gitopsv1alpha1.CommitStatusFinalizer}
			if tc.parent != "" {
				w.parent(cs, tc.parent)
				cs.Annotations[gitopsv1alpha1.ParentAnnotation] = tc.between + cs.Annotations[gitopsv1alpha1.ParentAnnotation]
			}
			if tc.follows != "" {
				cs.Annotations[gitopsv1alpha1.FollowsAnnotation] = "GitRepository team/fleet"
				w.follows("shop", tc.follows)
			}
			if err := w.hub.Update(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
			w.runs("team", "web")
			if err := w.hub.Delete(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
			if !tc.provider {
				if err := w.hub.Delete(t.Context(), &notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "forge"}}); err != nil {
					t.Fatal(err)
				}
			}
			w.limit("team", tc.limited)
			if tc.later {
				w.clock.SetTime(time.Now().Add(2 * longestClosing))
			}
			result, err := w.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil || result.RequeueAfter > longestClosing {
				t.Errorf("it came to %+v, %v", result, err)
			}
			if got := strings.Join(w.posts, ", "); got != tc.want || gone(w, "team") != tc.gone {
				t.Errorf("told %q, want %q; gone %v, want %v", got, tc.want, gone(w, "team"), tc.gone)
			}
			if last := w.reported[len(w.reported)-1]; tc.says != "" && last != tc.says {
				t.Errorf("told %q, want %q", last, tc.says)
			}
		})
	}
}

// clusters hold, of what a Kustomization applied, what is being removed, and what stays.
type clusters struct{ removing, stays bool }

func (c clusters) Remaining(context.Context, client.ObjectKey, []inventory.ID) ([]inventory.ID, error) {
	if !c.removing && !c.stays {
		return nil, nil
	}
	return []inventory.ID{{Namespace: "team", Name: "web", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}}, nil
}

func (c clusters) RemainingParts(context.Context, client.ObjectKey, []inventory.ID) ([]rollup.Part, error) {
	if !c.removing {
		return nil, nil
	}
	return []rollup.Part{{Object: "Deployment team/web", Leaving: []rollup.ClusterPart{{Name: "west", State: rollup.Progressing, Reason: "not removed yet"}}}}, nil
}

// TestARetiredKustomization: a commit that retires one is pending until clusters have removed what it applied, however
// long that takes, and says what stays.
func TestARetiredKustomization(t *testing.T) {
	const removed = "retired by this commit: what it applied is removed, or stays by its policy, or is applied by others"
	waits := "retired by this commit: 0/1 clusters ready: west waits for Deployment team/web: not removed yet"
	for name, tc := range map[string]struct {
		keeps          string
		is, becomes    clusters
		again          bool // another of its name is there
		ending         bool // its namespace is being deleted
		want, wantLast []string
		gone           bool
	}{
		"a cluster has yet to remove something": {is: clusters{removing: true}, becomes: clusters{removing: true}, want: []string{waits}, wantLast: []string{waits}},
		"it is removed in the end":              {is: clusters{removing: true}, want: []string{waits}, wantLast: []string{waits, removed}, gone: true},
		"it does not prune":                     {keeps: "true", want: []string{"retired by this commit: what it applied is left where it was, as it does not prune"}, gone: true},
		"it is suspended":                       {keeps: "suspended", want: []string{"retired by this commit: what it applied is left where it was, as it was suspended"}, gone: true},
		"it leaves orphans":                     {keeps: "orphan", want: []string{"retired by this commit: what it applied is left where it was, as its deletionPolicy is Orphan"}, gone: true},
		"some of it may not be deleted":         {is: clusters{stays: true}, want: []string{"retired by this commit: some of what it applied is left where it was: Deployment/team/web"}, gone: true},
		"it is there again":                     {is: clusters{removing: true}, again: true, want: []string{"retired by this commit: it is not known to be removed: 0/1 clusters ready: west waits for Deployment team/web: not removed yet"}, gone: true},
		"its namespace goes, too":               {is: clusters{removing: true}, ending: true, want: []string{"retired by this commit: it is not known to be removed: 0/1 clusters ready: west waits for Deployment team/web: not removed yet"}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTenants(t, Options{Remains: tc.is}, "team")
			key := client.ObjectKey{Namespace: "team", Name: "web"}
			ends := func() {
				t.Helper()
				if _, err := w.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Finalizers: []string{"test/wait"}}}
			if err := w.hub.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			if tc.ending {
				if err := w.hub.Delete(t.Context(), namespace); err != nil {
					t.Fatal(err)
				}
			}
			if tc.again {
				if err := w.hub.Create(t.Context(), &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}); err != nil {
					t.Fatal(err)
				}
			}
			w.reports("team", "web", 1, "a")
			cs := &gitopsv1alpha1.CommitStatus{}
			if err := w.hub.Get(t.Context(), key, cs); err != nil {
				t.Fatal(err)
			}
			cs.Spec.State, cs.Finalizers = gitopsv1alpha1.CommitPending, []string{gitopsv1alpha1.CommitStatusFinalizer}
			w.parent(cs, "main@sha1:"+strings.Repeat("a", 40))
			if tc.keeps != "" {
				cs.Annotations[gitopsv1alpha1.KeepsAnnotation] = tc.keeps
			}
			if err := w.hub.Update(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
			w.runs("team", "web")
			if err := w.hub.Delete(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
			ends()
			if diff := cmp.Diff(tc.want, w.reported[1:]); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if tc.wantLast != nil {
				w.loop.opts.Remains = tc.becomes
				w.clock.SetTime(time.Now().Add(10 * longestClosing))
				ends()
				if diff := cmp.Diff(tc.wantLast, w.reported[1:]); diff != "" {
					t.Errorf("told later (-want +got):\n%s", diff)
				}
			}
			if err := w.hub.Get(t.Context(), key, cs); (err != nil) != tc.gone {
				t.Errorf("reading it: %v, want it gone: %v", err, tc.gone)
			}
		})
	}
}

// parent has Kustomization root be the one that applied the one that a CommitStatus is about.
func (w *tenants) parent(cs *gitopsv1alpha1.CommitStatus, attempted string) {
	w.t.Helper()
	cs.Spec.KustomizationRef = &gitopsv1alpha1.LocalReference{Name: "shop"}
	cs.Annotations = map[string]string{gitopsv1alpha1.ParentAnnotation: "team/root"}
	root := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "root"}}
	if root.Status.LastAttemptedRevision = attempted; attempted == "holds" {
		root.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "team_shop_kustomize.toolkit.fluxcd.io_Kustomization", Version: "v1"}}}
	}
	if err := w.hub.Create(w.t.Context(), root); err != nil {
		w.t.Fatal(err)
	}
}

// follows has a Kustomization of a name that follows a repository.
func (w *tenants) follows(name, repository string) {
	w.t.Helper()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: repository}
	if err := w.hub.Create(w.t.Context(), ks); err != nil {
		w.t.Fatal(err)
	}
}

// TestWhatSucceededIsNoFailure: a commit that was a success, and is pending since, as a cluster fell silent, is one
// again when the next one comes, also after a restart.
func TestWhatSucceededIsNoFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		states []gitopsv1alpha1.CommitState
		want   string
		says   string
	}{
		"it was a success once":     {[]gitopsv1alpha1.CommitState{gitopsv1alpha1.CommitSuccess, gitopsv1alpha1.CommitPending}, "team success, team pending, team success, team success", "ready in all clusters once, superseded by bbbbbbbb"},
		"it never was":              {[]gitopsv1alpha1.CommitState{gitopsv1alpha1.CommitPending}, "team pending, team failure, team success", "superseded by bbbbbbbb"},
		"it failed in the meantime": {[]gitopsv1alpha1.CommitState{gitopsv1alpha1.CommitSuccess, gitopsv1alpha1.CommitFailure}, "team success, team failure, team success", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTenants(t, Options{}, "team")
			for i, state := range tc.states {
				w.reports("team", "web", int64(i+1), "a")
				w.becomes("team", "web", state)
				w.loop = New(w.hub, w.hub, w.loop.opts)
				w.runs("team", "web")
			}
			w.reports("team", "web", int64(len(tc.states)+1), "b")
			w.runs("team", "web")
			if diff := cmp.Diff(tc.want, strings.Join(w.posts, ", ")); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if reported := w.reported[len(w.reported)-2]; tc.says != "" && reported != tc.says {
				t.Errorf("says %q, want %q", reported, tc.says)
			}
		})
	}
}

// becomes has a CommitStatus be about another state of its commit.
func (w *tenants) becomes(namespace, name string, state gitopsv1alpha1.CommitState) {
	w.t.Helper()
	cs := &gitopsv1alpha1.CommitStatus{}
	if err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cs); err != nil {
		w.t.Fatal(err)
	}
	cs.Spec.State = state
	if err := w.hub.Update(w.t.Context(), cs); err != nil {
		w.t.Fatal(err)
	}
}
