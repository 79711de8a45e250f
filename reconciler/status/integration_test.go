package status_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/status"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// clusters is how many report.
const clusters = 8

// TestReports follows what clusters report to bindings and templates on the
// real server: the test stands in for those who place and carry.
func TestReports(t *testing.T) {
	f := &fleet{TB: t, env: servertest.New(t)}
	f.ns = f.env.Namespace(t)
	for i := range clusters {
		f.check(f.env.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(cluster(i))}}))
	}
	f.start()
	for _, step := range []struct {
		name string
		run  func(*testing.T, *fleet)
	}{
		{"a status flows to the template and then to the binding, in few writes", testFlow},
		{"a status that the server refuses is told, and mended", testRefused},
		{"the template follows its clusters as they leave", testLeaving},
		{"a cluster that stopped does not count as having what it was sent since", testStopped},
		{"what a lost cluster reported counts no more, until it is heard of again", testLost},
		{"statuses at the limit of size are stored in part", testLimits},
	} {
		if !t.Run(step.name, func(t *testing.T) { f.TB = t; step.run(t, f) }) {
			return
		}
	}
}

func testFlow(_ *testing.T, f *fleet) {
	b := f.propagate(deployment(f.ns, "web"), clusters)
	for i := range clusters {
		f.report(b, i, counts(2))
	}
	f.total("web", 2*clusters)
	f.until("the binding tells all of it", func(got *workv1alpha2.ResourceBinding) bool {
		return len(got.Status.AggregatedStatus) == clusters && meta.IsStatusConditionTrue(got.Status.Conditions, workv1alpha2.FullyApplied)
	}, b)
	f.env.Emptied(f)
	before := f.env.QuietRevision(f)
	f.report(b, 0, counts(1))
	f.total("web", 2*clusters-1)
	f.until("the binding tells of one", func(got *workv1alpha2.ResourceBinding) bool {
		return strings.Contains(string(got.Status.AggregatedStatus[0].Status.Raw), `"replicas":1`)
	}, b)
	if writes := f.env.QuietRevision(f) - before; writes != 3 {
		f.Errorf("%d writes for one change of a Work, want its own, the template's and the binding's", writes)
	}
}

func testRefused(_ *testing.T, f *fleet) {
	template := ingress(f.ns, "odd")
	b := f.propagate(template, 1)
	f.report(b, 0, `{"loadBalancer":{"ingress":[{"ip":"no address"}]}}`)
	f.until("the binding tells what is refused", func(got *workv1alpha2.ResourceBinding) bool {
		c := meta.FindStatusCondition(got.Status.Conditions, workv1alpha2.Interpreted)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == interpreter.Reason && strings.Contains(c.Message, "the status of Ingress odd is refused")
	}, b)
	before := f.env.QuietRevision(f)
	if again := f.env.QuietRevision(f); again != before {
		f.Errorf("%d writes while nothing changes", again-before)
	}
	f.report(b, 0, `{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}`)
	f.until("nothing is told any more", func(got *workv1alpha2.ResourceBinding) bool {
		return meta.FindStatusCondition(got.Status.Conditions, workv1alpha2.Interpreted) == nil
	}, b)
	want := []networkingv1.IngressLoadBalancerIngress{{IP: "10.0.0.1"}}
	f.addresses("odd", fmt.Sprint(want), func(got []networkingv1.IngressLoadBalancerIngress) bool { return cmp.Equal(got, want) })
}

func testLeaving(_ *testing.T, f *fleet) {
	b := f.propagate(deployment(f.ns, "gone"), 2)
	f.report(b, 0, counts(2))
	f.report(b, 1, counts(3))
	f.total("gone", 5)
	for _, left := range []int{1, 0} {
		spec := b.DeepCopy()
		spec.Spec.Clusters = spec.Spec.Clusters[:left]
		f.check(f.env.Hub.Patch(f.Context(), spec, client.MergeFrom(b)))
		f.total("gone", int32(2*left))
	}
}

func testStopped(_ *testing.T, f *fleet) {
	b := f.propagate(deployment(f.ns, "stuck"), 2)
	f.report(b, 0, counts(2))
	f.report(b, 1, counts(2))
	applied := func(want ...string) func(*workv1alpha2.ResourceBinding) bool {
		return func(got *workv1alpha2.ResourceBinding) bool {
			var reported []string
			for _, item := range got.Status.AggregatedStatus {
				reported = append(reported, fmt.Sprintf("%t%s", item.Applied, item.AppliedMessage))
			}
			return cmp.Equal(reported, want) && meta.IsStatusConditionTrue(got.Status.Conditions, workv1alpha2.FullyApplied) == !strings.Contains(fmt.Sprint(want), "false")
		}
	}
	f.until("both have it", applied("true", "true"), b)
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: workv1alpha2.ExecutionNamespace(cluster(0)), Name: workv1alpha2.WorkName("Deployment", "stuck", f.ns),
	}}
	f.check(f.env.Hub.Patch(f.Context(), work, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"preserveResourcesOnDeletion":true}}`))))
	f.until("one is behind", applied("false"+rollup.Overdue, "true"), b)
	before := f.env.QuietRevision(f)
	if again := f.env.QuietRevision(f); again != before {
		f.Errorf("%d writes while nothing changes", again-before)
	}
	f.report(b, 0, counts(2))
	f.until("both have it again", applied("true", "true"), b)
}

// testLost has a cluster not be ready for longer than that may last.
func testLost(t *testing.T, f *fleet) {
	lost := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster(1)}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	f.check(f.env.Hub.Create(t.Context(), lost))
	b := f.propagate(deployment(f.ns, "lost"), 2)
	f.report(b, 0, counts(2))
	f.report(b, 1, counts(3))
	f.total("lost", 5)
	for _, step := range []struct {
		ready metav1.ConditionStatus
		want  string
	}{{metav1.ConditionFalse, "5 2 2 3"}, {metav1.ConditionTrue, "5 5 5 0"}} {
		f.env.Emptied(f)
		before := f.env.QuietRevision(f)
		lost.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: step.ready, Reason: "Told", LastTransitionTime: metav1.Now()}}
		f.check(f.env.Hub.Status().Update(t.Context(), lost))
		got := ""
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			var d appsv1.Deployment
			f.check(f.env.Hub.Get(ctx, client.ObjectKey{Namespace: f.ns, Name: "lost"}, &d))
			got = fmt.Sprint(d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas)
			return got == step.want, nil
		})
		if err != nil {
			f.Fatalf("Ready is %s: counts %s, want %s", step.ready, got, step.want)
		}
		if writes := f.env.QuietRevision(f) - before; writes != 4 {
			f.Errorf("Ready is %s: %d writes, want the test's and one for each of the three templates there: web, stuck and this one", step.ready, writes)
		}
	}
}

// testLimits has each cluster report addresses up to the limit of a Work.
func testLimits(_ *testing.T, f *fleet) {
	template := ingress(f.ns, "wide")
	b := f.propagate(template, clusters)
	for i := range clusters {
		var list []string
		for j := range 5000 {
			list = append(list, fmt.Sprintf(`{"hostname":"h-%d-%d.a-name-of-some-length.example"}`, i, j))
		}
		f.report(b, i, `{"loadBalancer":{"ingress":[`+strings.Join(list, ",")+`]}}`)
	}
	f.until("the binding tells in part", func(got *workv1alpha2.ResourceBinding) bool {
		kept := 0
		for _, item := range got.Status.AggregatedStatus {
			if !item.Applied || item.Health != workv1alpha2.ResourceHealthy {
				return false
			}
			if item.Status != nil {
				kept++
			}
		}
		data, err := json.Marshal(got)
		f.check(err)
		c := meta.FindStatusCondition(got.Status.Conditions, workv1alpha2.StatusTruncated)
		return len(got.Status.AggregatedStatus) == clusters && kept == 3 && len(data) < 1536<<10 && c != nil &&
			strings.Contains(c.Message, "5 of 8 clusters") && strings.Contains(c.Message, "all but 4096 of 40000 entries of loadBalancer.ingress")
	}, b)
	f.addresses("wide", "4096 addresses", func(got []networkingv1.IngressLoadBalancerIngress) bool { return len(got) == 4096 })
	f.report(b, 0, `{"loadBalancer":{"ingress":[]}}`)
	f.until("the binding tells of what changed", func(got *workv1alpha2.ResourceBinding) bool {
		c := meta.FindStatusCondition(got.Status.Conditions, workv1alpha2.StatusTruncated)
		return strings.Contains(c.Message, "4 of 8 clusters") && strings.Contains(c.Message, "all but 4096 of 35000 entries of loadBalancer.ingress")
	}, b)
}

// fleet is the real server with the loop on it.
type fleet struct {
	testing.TB
	env *servertest.Env
	ns  string
}

// credulous takes for the status of what is odd whatever its first cluster says.
type credulous struct{ *interpreter.Interpreter }

func (c credulous) AggregateStatus(template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (map[string]any, bool, error) {
	if template.GetName() != "odd" {
		return c.Interpreter.AggregateStatus(template, items)
	}
	var reported map[string]any
	if items[0].Status == nil {
		return nil, false, nil
	}
	err := json.Unmarshal(items[0].Status.Raw, &reported)
	return reported, !cmp.Equal(reported, template.Object["status"]), err
}

func (f *fleet) start() {
	mgr, err := hub.NewManager(f.env.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	f.check(err)
	templates, err := templatestore.New(f.env.Config, templatestore.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	f.check(err)
	templates.Want("test", appsv1.SchemeGroupVersion.WithKind("Deployment"), networkingv1.SchemeGroupVersion.WithKind("Ingress"))
	f.check(status.New(mgr.GetClient(), templates, credulous{interpreter.Native()}, status.Options{OverdueAfter: 200 * time.Millisecond, SilentAfter: 200 * time.Millisecond}).Register(mgr))
	f.check(templates.Register(mgr))
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t := f.TB
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
}

func (f *fleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func cluster(i int) string { return fmt.Sprintf("m-%d", i) }

func deployment(namespace, name string) *appsv1.Deployment {
	match := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: match},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: match},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

func ingress(namespace, name string) *networkingv1.Ingress {
	backend := &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: backend}},
	}
}

func counts(replicas int) string {
	return fmt.Sprintf(`{"replicas":%d,"readyReplicas":%[1]d,"availableReplicas":%[1]d,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1}`, replicas)
}

// propagate makes a template, its binding and the Works for n clusters.
func (f *fleet) propagate(template client.Object, n int) *workv1alpha2.ResourceBinding {
	f.Helper()
	gvk, err := apiutil.GVKForObject(template, scheme.New())
	f.check(err)
	f.check(f.env.Hub.Create(f.Context(), template))
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.ns, Name: workv1alpha2.BindingName(gvk.Kind, template.GetName()),
		Annotations: placement.Decision{Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess}, AppliedPlacement: "{}"}.Annotations(),
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: f.ns, Name: template.GetName()}
	for i := range n {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster(i)})
	}
	f.check(f.env.Hub.Create(f.Context(), b))
	for i := range n {
		f.check(f.env.Hub.Create(f.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.ExecutionNamespace(cluster(i)), Name: workv1alpha2.WorkName(gvk.Kind, template.GetName(), f.ns),
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]},
			Annotations: map[string]string{
				workv1alpha2.ResourceBindingNamespaceAnnotationKey: b.Namespace, workv1alpha2.ResourceBindingNameAnnotationKey: b.Name,
			},
		}}))
	}
	return b
}

// report has a cluster report a status.
func (f *fleet) report(b *workv1alpha2.ResourceBinding, i int, raw string) {
	f.Helper()
	ref := b.Spec.Resource
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: workv1alpha2.ExecutionNamespace(cluster(i)), Name: workv1alpha2.WorkName(ref.Kind, ref.Name, ref.Namespace),
	}}
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(work), work))
	bare := work.DeepCopy()
	work.Status.Conditions = []metav1.Condition{{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkAppliedSuccessfulReason, LastTransitionTime: metav1.Unix(1, 0),
		ObservedGeneration: work.Generation,
	}}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Version: "v1", Kind: ref.Kind, Name: ref.Name},
		Health:     workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: []byte(raw)},
	}}
	f.check(f.env.Hub.Status().Patch(f.Context(), work, client.MergeFrom(bare)))
}

// total waits until the template counts so many replicas.
func (f *fleet) total(name string, want int32) {
	f.Helper()
	var got appsv1.Deployment
	err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := f.env.Hub.Get(ctx, client.ObjectKey{Namespace: f.ns, Name: name}, &got)
		return err == nil && got.Status.Replicas == want && got.Status.ReadyReplicas == want, err
	})
	if err != nil {
		f.Fatalf("%d replicas were to be counted: %v: %+v", want, err, got.Status)
	}
}

// addresses waits until the template, which is reported after its binding, has them.
func (f *fleet) addresses(name, what string, are func([]networkingv1.IngressLoadBalancerIngress) bool) {
	f.Helper()
	var got networkingv1.Ingress
	err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := f.env.Hub.Get(ctx, client.ObjectKey{Namespace: f.ns, Name: name}, &got)
		return err == nil && are(got.Status.LoadBalancer.Ingress), err
	})
	if err != nil {
		f.Fatalf("%s were to be told: %v: %.500v", what, err, got.Status)
	}
}

// until waits until the binding is as it should be.
func (f *fleet) until(what string, is func(*workv1alpha2.ResourceBinding) bool, b *workv1alpha2.ResourceBinding) {
	f.Helper()
	got := &workv1alpha2.ResourceBinding{}
	err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := f.env.Hub.Get(ctx, client.ObjectKeyFromObject(b), got); err != nil {
			return false, err
		}
		return is(got), nil
	})
	if err != nil {
		for i := range got.Status.AggregatedStatus {
			got.Status.AggregatedStatus[i].Status = nil
		}
		f.Fatalf("%s: %v: %+v", what, err, got.Status)
	}
}
