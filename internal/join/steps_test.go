package join_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
)

var errCut = errors.New("cut off")

// cut returns a client that fails from its n-th write on.
func cut(under client.WithWatch, writes *int, from int) client.WithWatch {
	fails := func() error {
		*writes++
		if *writes >= from {
			return errCut
		}
		return nil
	}
	return interceptor.NewClient(under, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return errors.Join(fails(), nilOr(*writes < from, func() error { return c.Create(ctx, obj, opts...) }))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return errors.Join(fails(), nilOr(*writes < from, func() error { return c.Patch(ctx, obj, patch, opts...) }))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return errors.Join(fails(), nilOr(*writes < from, func() error { return c.Delete(ctx, obj, opts...) }))
		},
	})
}

func nilOr(do bool, act func() error) error {
	if do {
		return act()
	}
	return nil
}

// pair is a hub and a member that issues tokens, as far as joining needs them.
type pair struct {
	hub, member client.WithWatch
	config      *rest.Config

	mu     sync.Mutex
	issued map[string]int // by account
	void   string         // a token that the member no longer accepts
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{issued: map[string]int{}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		void := r.Header.Get("Authorization") == "Bearer "+p.void
		p.mu.Unlock()
		if void {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		identify(w, r)
	}))
	t.Cleanup(server.Close)
	p.config = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pemOf("CERTIFICATE", server.Certificate().Raw)}}
	s := scheme.New()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "ours"}}
	p.hub = fake.NewClientBuilder().WithScheme(s).Build()
	p.member = fake.NewClientBuilder().WithScheme(s).WithObjects(namespace).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			secret, ok := obj.(*corev1.Secret)
			if !ok {
				return c.Create(ctx, obj, opts...)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			secret.Data = map[string][]byte{"token": fmt.Appendf(nil, "%s-%d", secret.Name, p.issued[secret.Name]+1)}
			err := c.Create(ctx, secret, opts...)
			if err == nil {
				p.issued[secret.Name]++
			}
			return err
		},
	}).Build()
	return p
}

func (p *pair) options() join.Options {
	return join.Options{Name: "eu-1", Hub: p.hub, Member: p.member, MemberConfig: p.config}
}

// dump returns the objects that joining creates, as they are in both clusters.
func (p *pair) dump(t *testing.T) []string {
	t.Helper()
	out := []string{}
	for side, c := range map[string]client.Client{"hub": p.hub, "member": p.member} {
		for _, list := range []client.ObjectList{
			&clusterv1alpha1.ClusterList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		} {
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			err := meta.EachListItem(list, func(obj runtime.Object) error {
				o, ok := obj.(client.Object)
				if !ok {
					return fmt.Errorf("%T", obj)
				}
				o.SetResourceVersion("")
				text, err := json.Marshal(o)
				out = append(out, fmt.Sprintf("%s %T %s", side, o, text))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestAJoinThatIsCutOffAnywhereIsFinishedByTheNext(t *testing.T) {
	whole := newPair(t)
	if err := join.Join(t.Context(), whole.options()); err != nil {
		t.Fatal(err)
	}
	for step := 1; ; step++ {
		p := newPair(t)
		p.config.Host = whole.config.Host // for comparison
		p.config.CAData = whole.config.CAData
		o, writes := p.options(), 0
		o.Hub, o.Member = cut(p.hub, &writes, step), cut(p.member, &writes, step)
		err := join.Join(t.Context(), o)
		if err == nil {
			if step < 10 {
				t.Errorf("only %d writes", step)
			}
			return
		}
		if !errors.Is(err, errCut) {
			t.Fatalf("step %d: %v", step, err)
		}
		if err := join.Join(t.Context(), p.options()); err != nil {
			t.Fatalf("after it was cut off at step %d: %v", step, err)
		}
		if diff := cmp.Diff(whole.dump(t), p.dump(t)); diff != "" {
			t.Errorf("after it was cut off at step %d (-want +got):\n%s", step, diff)
		}
	}
}

func TestAnUnjoinThatIsCutOffAnywhereIsFinishedByTheNext(t *testing.T) {
	for step := 1; ; step++ {
		p := newPair(t)
		if err := join.Join(t.Context(), p.options()); err != nil {
			t.Fatal(err)
		}
		writes := 0
		o := join.UnjoinOptions{Name: "eu-1", Hub: cut(p.hub, &writes, step), Member: cut(p.member, &writes, step)}
		err := join.Unjoin(t.Context(), o)
		done := err == nil
		if !done && !errors.Is(err, errCut) {
			t.Fatalf("step %d: %v", step, err)
		}
		o.Hub, o.Member = p.hub, p.member
		if err := join.Unjoin(t.Context(), o); apierrors.IsNotFound(err) != done || !done && err != nil {
			t.Fatalf("after it was cut off at step %d: %v", step, err)
		}
		if left := p.dump(t); len(left) != 0 {
			t.Errorf("after it was cut off at step %d there is left:\n%s", step, strings.Join(left, "\n"))
		}
		if done {
			return
		}
	}
}

// TestADryUnjoinSaysWhatGoes checks that a dry run of unjoin reports what would
// be removed from the cluster, and removes nothing.
func TestADryUnjoinSaysWhatGoes(t *testing.T) {
	p := newPair(t)
	if err := join.Join(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	for name, preserve := range map[string]*bool{"web": nil, "data": ptr.To(true), "used": nil} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu-1", Name: name}}
		if name == "used" { // the object belongs to somebody else
			w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
		}
		w.Spec.Workload.Manifests, w.Spec.PreserveResourcesOnDeletion = make([]workv1alpha1.Manifest, 2), preserve
		for i := range w.Spec.Workload.Manifests {
			w.Spec.Workload.Manifests[i].Raw = fmt.Appendf(nil, `{"kind":"ConfigMap","metadata":{"namespace":"shop","name":"%s-%d"}}`, name, i)
		}
		if err := p.hub.Create(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	claim := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu-1", Name: "claim", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b"}}}
	claim.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
	claim.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"shop","name":"data"}}`)
	if err := p.hub.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	before := p.dump(t)
	var reported []string
	o := join.UnjoinOptions{Name: "eu-1", Hub: p.hub, Member: p.member, DryRun: true, Progress: func(s join.Step) { reported = append(reported, s.String()) }}
	if err := join.Unjoin(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"would remove 2 objects that the fleet runs there (member)", "would leave 2 objects that their policy preserves (member)",
		"would leave PersistentVolumeClaim shop/data, with its data (member)",
		"would remove ConfigMap shop/web-0 (member)", "would remove ConfigMap shop/web-1 (member)", "would remove Cluster eu-1 (hub)",
	} {
		if !slices.Contains(reported, want) {
			t.Errorf("%q is not told:\n%s", want, strings.Join(reported, "\n"))
		}
	}
	if diff := cmp.Diff(before, p.dump(t)); diff != "" {
		t.Errorf("a dry run changed something (-before +after):\n%s", diff)
	}
	reported = nil
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Message: "it does not answer"}}
	if err := join.Going(t.Context(), p.hub, cluster, nil, o.Progress); err != nil {
		t.Fatal(err)
	}
	if want := "would leave 2 objects that the fleet runs there, since the cluster is not ready: it does not answer (member)"; !slices.Contains(reported, want) {
		t.Errorf("of a cluster that is not ready %q is told, want %q", reported, want)
	}
	reported = nil
	cluster.Status.Conditions[0].Reason = clusterv1alpha1.ClusterAnswersAgainReason
	if err := join.Going(t.Context(), p.hub, cluster, nil, o.Progress); err != nil {
		t.Fatal(err)
	}
	if want := "would remove ConfigMap shop/web-1 (member)"; !slices.Contains(reported, want) {
		t.Errorf("of a cluster that answers again %q is told, want %q", reported, want)
	}
}

// TestWhatLeavesByWhetherTheClusterAnswersNow checks that the cluster's answer at
// the time of a dry run counts over its condition, which is older.
func TestWhatLeavesByWhetherTheClusterAnswersNow(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason, Message: message}
	}
	ready := is(metav1.ConditionTrue, clusterv1alpha1.ClusterReadyReason, "")
	lost := is(metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason, "it is unreachable")
	unwell := is(metav1.ConditionFalse, clusterv1alpha1.ClusterNotReadyReason, "it is not healthy")
	const goes, stays = "would remove 1 object that the fleet runs there (member)", "would leave 1 object that the fleet runs there, since the cluster is not ready: "
	for name, tc := range map[string]struct {
		ready   metav1.Condition
		answers error
		want    string
	}{
		"it is ready, and answers":                          {ready, nil, goes},
		"it is ready, and has just stopped to answer":       {ready, errors.New("timeout"), stays + "it does not answer now (member)"},
		"it is ready, and refuses us":                       {ready, apierrors.NewForbidden(schema.GroupResource{}, "", nil), goes},
		"it is not healthy, and has just stopped to answer": {unwell, errors.New("timeout"), stays + "it does not answer now (member)"},
		"it is lost, and has just answered again":           {lost, nil, goes},
		"it is lost, and does not answer":                   {lost, errors.New("timeout"), stays + "it is unreachable (member)"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
			cluster.Status.Conditions = []metav1.Condition{tc.ready}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu-1", Name: "web"}}
			work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
			work.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web"}}`)
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster, work).Build()
			var reported []string
			err := join.Unjoin(t.Context(), join.UnjoinOptions{
				Name: "eu-1", Hub: hub, DryRun: true, Progress: func(s join.Step) { reported = append(reported, s.String()) },
				Departure: &join.Departure{Name: "eu-1", Hub: hub, Answers: func(context.Context) error { return tc.answers }},
			})
			if err != nil || !slices.Contains(reported, tc.want) {
				t.Errorf("error %v, told:\n%s\nwant %s", err, strings.Join(reported, "\n"), tc.want)
			}
		})
	}
}

func TestJoiningAgainBringsTheRegistrationUpToDate(t *testing.T) {
	p := newPair(t)
	if err := join.Join(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	p.void = "karmada-eu-1-1"
	p.config.ServerName = "example.com"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-eu-1"}}
	if err := p.member.Patch(t.Context(), role, client.RawPatch("application/merge-patch+json", []byte(`{"rules":[]}`))); err != nil {
		t.Fatal(err)
	}
	var reported steps
	o := p.options()
	o.Region, o.Progress = "eu", reported.add
	if err := join.Join(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := steps{
		"kept Namespace karmada-cluster (member)",
		"kept ServiceAccount karmada-cluster/karmada-impersonator (member)",
		"kept Secret karmada-cluster/karmada-impersonator (member)",
		"kept ServiceAccount karmada-cluster/karmada-eu-1 (member)",
		"kept Secret karmada-cluster/karmada-eu-1 (member)",
		"updated ClusterRole karmada-controller-manager:karmada-eu-1 (member)",
		"kept ClusterRoleBinding karmada-controller-manager:karmada-eu-1 (member)",
		"removed Secret karmada-cluster/karmada-eu-1 (member)",
		"created Secret karmada-cluster/karmada-eu-1 (member)",
		"kept Namespace karmada-cluster (hub)",
		"updated Secret karmada-cluster/eu-1 (hub)",
		"kept Secret karmada-cluster/eu-1-impersonator (hub)",
		"updated Cluster eu-1 (hub)",
	}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	secret, cluster := &corev1.Secret{}, &clusterv1alpha1.Cluster{}
	for key, obj := range map[client.ObjectKey]client.Object{{Namespace: "karmada-cluster", Name: "eu-1"}: secret, {Name: "eu-1"}: cluster} {
		if err := p.hub.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(secret.Data["token"]); got != "karmada-eu-1-2" {
		t.Errorf("the hub has the token %s", got)
	}
	if cluster.Spec.Region != "eu" || cluster.Annotations[clusterv1alpha1.TLSServerNameAnnotation] != "example.com" {
		t.Errorf("cluster: %v %v", cluster.Annotations, cluster.Spec)
	}
}

func TestWhoMayNotJoin(t *testing.T) {
	now := metav1.Now()
	cases := map[string]struct {
		there clusterv1alpha1.Cluster
		want  error
		says  string
	}{
		"a cluster that has another name": {
			clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-2"}, Spec: clusterv1alpha1.ClusterSpec{ID: "ours", SyncMode: clusterv1alpha1.Pull}},
			join.ErrTaken, "as eu-2",
		},
		"a cluster whose name another one has, or that was built anew": {
			clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}, Spec: clusterv1alpha1.ClusterSpec{ID: "theirs", SyncMode: clusterv1alpha1.Push}},
			join.ErrTaken, "unjoin that one first",
		},
		"a cluster that has an agent": {
			clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}, Spec: clusterv1alpha1.ClusterSpec{ID: "ours", SyncMode: clusterv1alpha1.Pull}},
			join.ErrTaken, "unregister it first",
		},
		"a cluster that is leaving": {
			clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "eu-1", DeletionTimestamp: &now, Finalizers: []string{"a/b"}},
				Spec:       clusterv1alpha1.ClusterSpec{ID: "ours", SyncMode: clusterv1alpha1.Push},
			},
			join.ErrLeaving, "wait until eu-1 has left",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			o := p.options()
			o.Hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(&tc.there).Build()
			if err := join.Join(t.Context(), o); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Join = %v, want %v that says %q", err, tc.want, tc.says)
			}
			if left := p.dump(t); len(left) != 0 {
				t.Errorf("it has left behind:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

func TestUnjoinLeavesOthersAlone(t *testing.T) {
	p := newPair(t)
	if err := join.Join(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		member func() client.WithWatch
		force  bool
		want   string // part of the error; empty for no error
		left   string // an object that must still exist
	}{
		"a member that is another": {func() client.WithWatch {
			return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "theirs"}}).Build()
		}, true, "another cluster", "Cluster"},
		"a member that is away": {func() client.WithWatch {
			return fake.NewClientBuilder().WithScheme(scheme.New()).Build()
		}, false, "does not answer", "Cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			o := join.UnjoinOptions{Name: "eu-1", Hub: p.hub, Member: tc.member(), Force: tc.force}
			if err := join.Unjoin(t.Context(), o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Unjoin = %v", err)
			}
			if left := strings.Join(p.dump(t), "\n"); !strings.Contains(left, tc.left) {
				t.Errorf("left: %s", left)
			}
		})
	}

	before := p.dump(t)
	err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "eu-11", Hub: p.hub, HubID: "h", Member: claimed(t, p.member, `{"hub":"h","cluster":"eu-1"}`)})
	if !errors.Is(err, join.ErrOther) || !strings.Contains(err.Error(), "the cluster eu-1") {
		t.Errorf("a name that was mistyped: %v", err)
	}
	if diff := cmp.Diff(before, p.dump(t)); diff != "" {
		t.Errorf("it has changed:\n%s", diff)
	}

	others := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-cluster", Name: "karmada-of-another-hub", Labels: map[string]string{"karmada.io/system": "true"},
	}}
	if err := p.member.Create(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "eu-1", Hub: p.hub, Member: p.member}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range p.dump(t) {
		names = append(names, strings.Join(strings.Fields(line)[:2], " ")+" "+line[strings.Index(line, `"name":`)+7:strings.Index(line, `,"namespace"`)])
	}
	want := []string{
		`member *v1.Secret "karmada-impersonator"`, `member *v1.ServiceAccount "karmada-impersonator"`, `member *v1.ServiceAccount "karmada-of-another-hub"`,
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// claimed returns the member with a claim on it.
func claimed(t *testing.T, member client.WithWatch, claim string) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(member, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if system, ok := obj.(*corev1.Namespace); ok && key.Name == metav1.NamespaceSystem {
				system.Annotations = map[string]string{clusterv1alpha1.ClaimAnnotation: claim}
			}
			return err
		},
	})
}

func TestForceLetsAClusterGoWhoseMemberIsAway(t *testing.T) {
	p := newPair(t)
	if err := join.Join(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	away := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "eu-1", Hub: p.hub, Member: away, Force: true}); err != nil {
		t.Fatal(err)
	}
	for _, line := range p.dump(t) {
		if strings.HasPrefix(line, "hub ") {
			t.Errorf("left: %s", line)
		}
	}
}
