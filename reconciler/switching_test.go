package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// TestManifestsAreOfOneRevision has random revisions of templates, policies and overrides follow each other,
// with loops that die after a random write: whatever a Work ever holds is what one revision wants there,
// and it is written once for each.
func TestManifestsAreOfOneRevision(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSwitches(t)
	defer func() { s.check(s.stop()) }()

	var history []revision
	next := revision{templates: map[string]string{}, overrides: map[string]overrideOf{}, all: []string{from, to}}
	for n := range 14 {
		next = next.after(random, n)
		history = append(history, next)
		switch {
		case n == 0:
			s.start(-1)
		case random.IntN(3) > 0:
			s.check(s.stop())
			s.start(random.IntN(30))
		}
		s.commit(next)
		s.awaitEverywhere(next)
		if t.Failed() {
			break
		}
	}
	if diff := cmp.Diff(sequences(history), s.seen()); diff != "" {
		t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
		for n, r := range history {
			t.Logf("revision %d: %+v", n, r)
		}
	}
}

// revision is what a commit holds.
type revision struct {
	// templates are ConfigMaps, by name: what each holds.
	templates map[string]string
	overrides map[string]overrideOf
	// all is where the policy of all sends templates; one, where one named template goes instead, if
	// a policy says so.
	all  []string
	name string
	one  []string
}

// overrideOf puts value under the override's name, into one template or, without a name, all of them.
type overrideOf struct{ only, value string }

// after returns a revision that differs from r at random.
func (r revision) after(random *rand.Rand, n int) revision {
	out := revision{templates: maps.Clone(r.templates), overrides: maps.Clone(r.overrides), all: r.all, name: r.name, one: r.one}
	some := func() bool { return random.IntN(2) == 0 }
	name := func() string { return fmt.Sprintf("t%d", random.IntN(6)) }
	places := func() []string {
		return [][]string{{from}, {to}, {from, to}}[random.IntN(3)]
	}
	value := fmt.Sprintf("r%d", n)
	for i := range 6 {
		if key := fmt.Sprintf("t%d", i); n == 0 || out.templates[key] != "" && some() {
			out.templates[key] = value
		}
	}
	if key := name(); some() && len(out.templates) > 4 {
		delete(out.templates, key)
	} else {
		out.templates[key] = value
	}
	for i := range 3 {
		key := fmt.Sprintf("o%d", i)
		switch random.IntN(4) {
		case 0:
			delete(out.overrides, key)
		case 1:
			out.overrides[key] = overrideOf{value: value}
		case 2:
			out.overrides[key] = overrideOf{only: name(), value: value}
		}
	}
	if some() {
		out.all = places()
	}
	switch random.IntN(3) {
	case 0:
		out.name, out.one = "", nil
	case 1:
		out.name, out.one = name(), places()
	}
	return out
}

// held is what the Work of a template holds in a cluster; empty for none.
func (r revision) content(cluster, name string) string {
	places, by := r.all, "all"
	if r.name == name {
		places, by = r.one, "one"
	}
	if r.templates[name] == "" || !slices.Contains(places, cluster) {
		return ""
	}
	parts := []string{r.templates[name], "by", by}
	for _, key := range slices.Sorted(maps.Keys(r.overrides)) {
		if o := r.overrides[key]; o.only == "" || o.only == name {
			parts = append(parts, key+"="+o.value)
		}
	}
	return strings.Join(parts, " ")
}

// sequences are what Works hold, one after the other, by "cluster/template".
func sequences(history []revision) map[string][]string {
	out := map[string][]string{}
	for _, cluster := range []string{from, to} {
		for i := range 6 {
			name, last := fmt.Sprintf("t%d", i), ""
			for _, r := range history {
				held := r.content(cluster, name)
				if held != last {
					out[cluster+"/"+name] = append(out[cluster+"/"+name], held)
				}
				last = held
			}
		}
	}
	return out
}

// manifests are the files of a revision.
func (r revision) manifests(namespace string) string {
	var out strings.Builder
	for _, manifest := range r.objects(namespace) {
		out.WriteString(manifest)
	}
	return out.String()
}

// objects are the manifests of a revision, by the names of the objects.
func (r revision) objects(namespace string) map[string]string {
	out := map[string]string{}
	for name, value := range r.templates {
		out[name] = fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {is: %s}\n", name, namespace, value)
	}
	policy := func(name, selects, more string, clusters []string) {
		out[name] = fmt.Sprintf("---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: %s, namespace: %s}\nspec:\n"+
			"  resourceSelectors: [{apiVersion: v1, kind: ConfigMap%s}]\n  placement: {clusterAffinity: {clusterNames: [%s]}}\n%s", name, namespace, selects, strings.Join(clusters, ", "), more)
	}
	policy("all", "", "", r.all)
	if r.name != "" {
		policy("one", ", name: "+r.name, "  priority: 10\n  preemption: Always\n", r.one)
	}
	for name, o := range r.overrides {
		selects := ""
		if o.only != "" {
			selects = ", name: " + o.only
		}
		out[name] = fmt.Sprintf("---\napiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: %s, namespace: %s}\nspec:\n"+
			"  resourceSelectors: [{apiVersion: v1, kind: ConfigMap%s}]\n  overrideRules: [{overriders: {annotationsOverrider: [{operator: add, value: {%[1]s: %[4]s}}]}}]\n", name, namespace, selects, o.value)
	}
	return out
}

// switches is a control plane with the loops that carry a Kustomization to two members, and a watch on
// all Works.
type switches struct {
	*moves
	store     *artifact.Store
	namespace string
	stop      func() error
	plug      *outage

	// distinct says that a Work which is written again with what it holds, such as other labels, is not noted again.
	distinct bool
	// wrap is put around the connection of the loops, if it is set.
	wrap func(http.RoundTripper) http.RoundTripper

	mu  sync.Mutex
	got map[string][]string
}

func newSwitches(t *testing.T) *switches {
	s := newSource(withoutLoops(t))
	s.create("shop", "")
	return s
}

// withoutLoops returns a control plane and two members, and ends the loops.
func withoutLoops(t *testing.T) *moves {
	m := newMoves(t)
	m.check((*m.loops)())
	*m.loops = func() error { return nil }
	return m
}

// newSource returns switches with a source, and no Kustomization of it yet.
func newSource(m *moves) *switches {
	s := &switches{moves: m, namespace: m.hub.Namespace(m.T), got: map[string][]string{}}
	var err error
	s.store, err = artifact.NewStore(m.TempDir(), artifact.Options{BaseURL: "http://localhost"})
	m.check(err)
	m.check(m.hub.Hub.Create(m.Context(), &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "fleet"},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example.com/fleet", Interval: metav1.Duration{Duration: time.Minute}},
	}))
	for _, cluster := range []string{from, to} {
		s.watch(cluster)
	}
	return s
}

// create makes a Kustomization of a folder.
func (s *switches) create(name, path string) {
	s.Helper()
	s.createAs(name, path, func(*kustomizev1.KustomizationSpec) {})
}

// createAs does so with a change of its spec.
func (s *switches) createAs(name, path string, change func(*kustomizev1.KustomizationSpec)) {
	s.Helper()
	ks := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: time.Hour}, RetryInterval: &metav1.Duration{Duration: time.Second}, Prune: true, Path: path,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "fleet"},
		},
	}
	change(&ks.Spec)
	s.check(s.hub.Hub.Create(s.Context(), ks))
}

// outage is a connection that ends after a number of writes.
type outage struct {
	next   http.RoundTripper
	writes atomic.Int64 // that still arrive
}

func (o *outage) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "/leases") && !strings.Contains(req.URL.RawQuery, "dryRun") {
		o.writes.Add(-1)
	}
	if o.writes.Load() < 0 {
		return nil, errors.New("connection refused")
	}
	return o.next.RoundTrip(req)
}

// start runs loops whose writes all arrive, or, with 0 and more, that many.
func (s *switches) start(writes int) {
	s.Helper()
	config := rest.CopyConfig(s.hub.Config)
	s.plug = &outage{}
	if s.plug.writes.Store(int64(writes)); writes < 0 {
		s.plug.writes.Store(1 << 40)
	}
	plug := s.plug
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { plug.next = next; return plug })
	if s.wrap != nil {
		config.Wrap(s.wrap)
	}
	mgr, err := hub.NewManager(config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	s.check(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	s.check(reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: []string{"kustomization", "template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster"},
		Artifacts:   s.store,
		// Loops that were just started do not yet trust what Works report of a move, for as long as both together.
		Silence: cluster.Silence{Grace: 5 * time.Second}, Tuning: reconciler.Tuning{Period: time.Second},
		Revisions: reconciler.Revisions{Tenancy: tenancy.Rules{PrivilegedNamespaces: []string{s.namespace}}},
	}))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.stop = func() error {
		cancel()
		return <-done
	}
}

func (s *switches) commit(r revision) {
	s.Helper()
	s.push(artifact.Files{"all.yaml": artifact.File{Data: []byte(r.manifests(s.namespace))}})
}

// push has the source fetch files of a commit that lets something go by its name.
func (s *switches) push(files artifact.Files, allows ...string) {
	s.Helper()
	stored, err := s.store.Put(s.Context(), "GitRepository/"+s.namespace+"/fleet", files)
	s.check(err)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": map[string]any{
		"digest": stored.Digest, "path": stored.Path, "url": stored.URL, "revision": "main@" + stored.Digest, "lastUpdateTime": "2026-01-02T03:04:05Z", "size": stored.Size,
		"metadata": map[string]any{gitopsv1alpha1.CommitAllowDeleteKey: strings.Join(allows, ", ")},
	}}})
	s.check(err)
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "fleet"}}
	s.check(s.hub.Hub.Status().Patch(s.Context(), source, client.RawPatch(types.MergePatchType, patch)))
}

// awaitEverywhere waits until a revision is everywhere; loops that have died are followed by others.
func (s *switches) awaitEverywhere(r revision) {
	s.Helper()
	s.everywhere(r)
	s.stand("shop")
}

// everywhere waits until Works hold a revision.
func (s *switches) everywhere(r revision) {
	s.Helper()
	s.eventually("the revision is everywhere", func() error {
		s.revive()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, cluster := range []string{from, to} {
			for i := range 6 {
				name := fmt.Sprintf("t%d", i)
				last := ""
				if got := s.got[cluster+"/"+name]; len(got) > 0 {
					last = got[len(got)-1]
				}
				if want := r.content(cluster, name); want != last {
					return fmt.Errorf("%s in %s holds %q, not %q", name, cluster, last, want)
				}
			}
		}
		return nil
	})
}

// stand waits until the source's revision is applied by Kustomizations, and nothing of it is outstanding.
func (s *switches) stand(names ...string) {
	s.Helper()
	s.eventually("the Kustomizations are ready", func() error {
		s.revive()
		source := &sourcev1.GitRepository{}
		if err := s.hub.Hub.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "fleet"}, source); err != nil {
			return err
		}
		for _, name := range names {
			var ks kustomizev1.Kustomization
			if err := s.hub.Hub.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &ks); err != nil {
				return err
			}
			if ks.Status.LastAppliedRevision != source.Status.Artifact.Revision || !apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.ReadyCondition) {
				return fmt.Errorf("conditions of %s: %+v", name, ks.Status.Conditions)
			}
		}
		return nil
	})
}

// revive has loops that have died be followed by others.
func (s *switches) revive() {
	if s.plug.writes.Load() < 0 {
		s.check(s.stop())
		s.start(-1)
	}
}

// watch notes what the Works of the namespace hold in a cluster.
func (s *switches) watch(cluster string) {
	s.Helper()
	live, err := client.NewWithWatch(s.hub.Config, client.Options{Scheme: scheme.New()})
	s.check(err)
	events, err := live.Watch(s.Context(), &workv1alpha1.WorkList{}, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)))
	s.check(err)
	go func() {
		versions := map[string]int64{}
		for event := range events.ResultChan() {
			work, ok := event.Object.(*workv1alpha1.Work)
			if !ok || len(work.Spec.Workload.Manifests) == 0 {
				continue
			}
			var obj unstructured.Unstructured
			if json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &obj.Object) != nil || obj.GetKind() != "ConfigMap" || obj.GetNamespace() != s.namespace {
				continue
			}
			key := cluster + "/" + obj.GetName()
			s.mu.Lock()
			switch {
			case event.Type == watch.Deleted:
				s.got[key] = append(s.got[key], "")
				delete(versions, key)
			case work.DeletionTimestamp == nil && work.Generation != versions[key]:
				versions[key] = work.Generation
				if held, had := holds(&obj), s.got[key]; !s.distinct || len(had) == 0 || had[len(had)-1] != held {
					s.got[key] = append(had, held)
				}
			}
			s.mu.Unlock()
		}
	}()
}

// holds is what a manifest holds, as revision.held says it.
func holds(obj *unstructured.Unstructured) string {
	is, _, _ := unstructured.NestedString(obj.Object, "data", "is")
	parts := []string{is, "by", obj.GetAnnotations()[policyv1alpha1.PropagationPolicyNameAnnotation]}
	for _, key := range slices.Sorted(maps.Keys(obj.GetAnnotations())) {
		if strings.HasPrefix(key, "o") && len(key) == 2 {
			parts = append(parts, key+"="+obj.GetAnnotations()[key])
		}
	}
	return strings.Join(parts, " ")
}

func (s *switches) seen() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for key, list := range s.got {
		out[key] = slices.Clone(list)
	}
	return out
}
