package execution_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/execution"
	"github.com/flotilla-io/flotilla/reconciler/namespace"
	"github.com/flotilla-io/flotilla/reconciler/status"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// timeout is how long a test waits for what takes milliseconds.
const timeout = 2 * time.Minute

// period is the interval at which the cluster loop checks the member.
const period = time.Second

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// fleet is a control plane with one member and the loops between them.
type fleet struct {
	t      *testing.T // all of the test, not one step of it
	hub    *servertest.Env
	member *membertest.Member
	at     member.Options
	edge   client.Client // of the member
	web    *workv1alpha2.ResourceBinding

	stopLoops func()
}

// newFleet runs a fleet for one test. Such tests are parallel, as most of their time
// they wait: five seconds for each deleted namespace, and for the loops' intervals.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, hub: servertest.New(t), at: member.Options{Name: "eu-1", DataDir: t.TempDir(), Nodes: 1}}
	f.startMember()
	f.startLoops()
	return f
}

func (f *fleet) startMember() {
	t := f.t
	t.Helper()
	f.member = membertest.Start(t, f.at)
	var err error
	if f.edge, err = client.New(f.member.Config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
}

// nobody drops events.
type nobody struct{}

func (nobody) Event(runtime.Object, string, string, string) {}

// startLoops runs the loops until stopLoops, or the test's end.
func (f *fleet) startLoops() {
	t := f.t
	t.Helper()
	mgr, err := hub.NewManager(f.hub.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	native := interpreter.Native()
	registry := members.New(members.Options{Interpreter: native, RequestTimeout: 30 * time.Second})
	templates, err := templatestore.New(f.hub.Config, templatestore.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	templates.Want("test", appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	cached := mgr.GetClient()
	keeper := setback.New(cached, mgr.GetAPIReader(), nil)
	carry := execution.New(cached, registry, native, nobody{}, execution.Options{Hold: keeper.HoldOf, PodsDelay: 100 * time.Millisecond})
	keeper.OnChange(carry.Wake)
	if err := keeper.Register(mgr, true); err != nil {
		t.Fatal(err)
	}
	loops := []interface{ Register(ctrl.Manager) error }{
		cluster.New(cached, mgr.GetAPIReader(), registry, nobody{}, cluster.Options{
			Marks: keeper, Hold: keeper.Hold, OnHold: keeper.OnChange,
			Period: period, FailureThreshold: 2 * time.Second, SuccessThreshold: time.Second,
		}),
		carry,
		status.New(cached, templates, native, status.Options{}),
	}
	for _, l := range loops {
		if err := l.Register(mgr); err != nil {
			t.Fatal(err)
		}
	}
	if err := namespace.New(cached, namespace.Options{}).Register(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	for _, r := range []manager.Runnable{registry, templates} {
		if err := mgr.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	f.stopLoops = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("loops: %v", err)
		}
	})
	t.Cleanup(f.stopLoops)
}

// join registers the member as eu-1.
func (f *fleet) join(t *testing.T) {
	t.Helper()
	err := join.Join(t.Context(), join.Options{Name: "eu-1", Hub: f.hub.Hub, Member: f.edge, MemberConfig: f.member.Config})
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check returns no error, and reports the last one if it always does.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// template creates a template on the hub, and a binding that places it on eu-1,
// and returns the binding.
func (f *fleet) template(t *testing.T, obj client.Object, replicas int32) *workv1alpha2.ResourceBinding {
	t.Helper()
	if err := f.hub.Hub.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	return f.place(t, obj, replicas)
}

// place creates a binding that places a template on eu-1, and its Work, and returns the
// binding.
func (f *fleet) place(t *testing.T, obj client.Object, replicas int32) *workv1alpha2.ResourceBinding {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, f.hub.Hub.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.GetNamespace(), Name: workv1alpha2.BindingName(gvk.Kind, obj.GetName()),
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: string(uuid.NewUUID())},
			Annotations: map[string]string{
				workv1alpha2.SchedulingDecisionAnnotation: `{"reason":"Success","message":"Binding has been scheduled successfully.","at":"2026-11-20T18:00:00Z"}`,
			},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
				UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
			},
			Replicas: replicas,
			Clusters: []workv1alpha2.TargetCluster{{Name: "eu-1", Replicas: replicas}},
		},
	}
	if err := f.hub.Hub.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	f.carry(t, b, obj)
	return b
}

// carry writes the Work of a binding as it is planned for the template.
func (f *fleet) carry(t *testing.T, b *workv1alpha2.ResourceBinding, obj client.Object) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	template := &unstructured.Unstructured{Object: content}
	template.SetAPIVersion(b.Spec.Resource.APIVersion)
	template.SetKind(b.Spec.Resource.Kind)
	plans, err := plan.Works(plan.WorksInput{
		Binding: b, Template: template, Interpreter: interpreter.Native(),
		Cluster: func(name string) (*clusterv1alpha1.Cluster, bool) {
			return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, true
		},
	})
	if err != nil || len(plans) != 1 || plans[0].Err != nil {
		t.Fatalf("plans = %v, %v", plans, err)
	}
	planned := plans[0].Work
	eventually(t, "the cluster has its namespace", func(ctx context.Context) error {
		return f.hub.Hub.Get(ctx, client.ObjectKey{Name: planned.Namespace}, &corev1.Namespace{})
	})
	current := &workv1alpha1.Work{}
	err = f.hub.Hub.Get(t.Context(), client.ObjectKeyFromObject(planned), current)
	if apierrors.IsNotFound(err) {
		if err := f.hub.Hub.Create(t.Context(), planned); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the loops write its metadata
		if err := f.hub.Hub.Get(t.Context(), client.ObjectKeyFromObject(planned), current); err != nil {
			return err
		}
		current.Spec = planned.Spec
		if by := planned.Annotations[workv1alpha2.AppliedByAnnotation]; by != "" {
			metav1.SetMetaDataAnnotation(&current.ObjectMeta, workv1alpha2.AppliedByAnnotation, by)
		}
		return f.hub.Hub.Update(t.Context(), current)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// work returns the Work of a binding.
func (f *fleet) work(ctx context.Context, b *workv1alpha2.ResourceBinding) (*workv1alpha1.Work, error) {
	ref := b.Spec.Resource
	work := &workv1alpha1.Work{}
	err := f.hub.Hub.Get(ctx, client.ObjectKey{
		Namespace: workv1alpha2.ExecutionNamespace("eu-1"),
		Name:      workv1alpha2.WorkName(ref.Kind, ref.Name, ref.Namespace),
	}, work)
	return work, err
}

// applied waits until the Work of a binding is applied and healthy.
func (f *fleet) applied(t *testing.T, b *workv1alpha2.ResourceBinding) *workv1alpha1.Work {
	t.Helper()
	var work *workv1alpha1.Work
	eventually(t, "the work is applied", func(ctx context.Context) (err error) {
		if work, err = f.work(ctx, b); err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
			return fmt.Errorf("conditions: %v", work.Status.Conditions)
		}
		if len(work.Status.ManifestStatuses) != 1 || work.Status.ManifestStatuses[0].Health != workv1alpha1.ResourceHealthy {
			return fmt.Errorf("manifest statuses: %v", work.Status.ManifestStatuses)
		}
		return nil
	})
	return work
}

// since names the hub's objects that were written after a revision.
func (f *fleet) since(t *testing.T, revision int64) []string {
	t.Helper()
	var out []string
	for _, list := range []client.ObjectList{
		&clusterv1alpha1.ClusterList{}, &workv1alpha1.WorkList{}, &workv1alpha2.ResourceBindingList{},
		&appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &corev1.NamespaceList{}, &corev1.SecretList{},
	} {
		if err := f.hub.Hub.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			obj, ok := item.(client.Object)
			if !ok {
				t.Fatalf("%T is no object", item)
			}
			if at, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64); err == nil && at > revision {
				out = append(out, fmt.Sprintf("%T %s", obj, client.ObjectKeyFromObject(obj)))
			}
		}
	}
	slices.Sort(out)
	return out
}
