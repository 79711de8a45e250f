package execution_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// drifted waits until the condition Drifted of a binding's Work has the reason and
// message; an empty reason means that there is no such condition.
func (f *fleet) drifted(t *testing.T, b *workv1alpha2.ResourceBinding, reason, message string) {
	t.Helper()
	eventually(t, "drift is reported", func(ctx context.Context) error {
		work, err := f.work(ctx, b)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDrifted)
		if c == nil && reason == "" {
			return nil
		}
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
			return fmt.Errorf("condition: %v", c)
		}
		return nil
	})
}

// edit changes an object in the member as somebody else.
func edit[T client.Object](t *testing.T, f *fleet, obj T, owner string, change func(T)) {
	t.Helper()
	eventually(t, "the object is changed in the member", func(ctx context.Context) error {
		if err := f.edge.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change(obj)
		return f.edge.Update(ctx, obj, client.FieldOwner(owner))
	})
}

func testReported(t *testing.T, f *fleet) {
	template := config("reported", "ours")
	template.Annotations = map[string]string{workv1alpha2.DriftAnnotation: workv1alpha2.DriftReport}
	b := f.template(t, template, 0)
	f.applied(t, b)
	there := config("reported", "")
	edit(t, f, there, "kubectl-edit", func(cm *corev1.ConfigMap) { cm.Data["key"] = "theirs" })
	f.drifted(t, b, workv1alpha1.WorkDriftReportedReason, "ConfigMap shop/reported: data.key changed by kubectl-edit at 2")
	if got, err := f.value(t.Context(), "reported"); err != nil || got != "theirs" {
		t.Errorf("value = %q, %v: it was to be left alone", got, err)
	}
	if err := f.edge.Delete(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	f.drifted(t, b, workv1alpha1.WorkDriftReportedReason, "ConfigMap shop/reported was removed")
	if _, err := f.value(t.Context(), "reported"); !apierrors.IsNotFound(err) {
		t.Errorf("it was made again: %v", err)
	}
	before := f.hub.QuietRevision(t)
	template.Data["key"] = "newer"
	f.carry(t, b, template)
	f.drifted(t, b, "", "")
	f.applied(t, b)
	if got, err := f.value(t.Context(), "reported"); err != nil || got != "newer" {
		t.Errorf("value = %q, %v: a change of the template is sent in any case", got, err)
	}
	if writes := f.hub.QuietRevision(t) - before; writes > 6 {
		t.Errorf("%d writes", writes)
	}
}

// testPort: a port with another number is another port, which has the name of ours: both at once are refused.
func testPort(t *testing.T, f *fleet) {
	service := func(port int32, more ...corev1.ServicePort) *corev1.Service {
		ports := append([]corev1.ServicePort{{Name: "http", Port: port, Protocol: corev1.ProtocolTCP}}, more...)
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: ports}}
	}
	theirs := corev1.ServicePort{Name: "theirs", Port: 90, Protocol: corev1.ProtocolTCP}
	numbers := func(ctx context.Context) ([]int32, error) {
		is := service(0)
		err := f.edge.Get(ctx, client.ObjectKeyFromObject(is), is)
		var out []int32
		for _, p := range is.Spec.Ports {
			out = append(out, p.Port)
		}
		slices.Sort(out)
		return out, err
	}
	has := func(want ...int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("the ports are %v", want), func(ctx context.Context) error {
			if got, err := numbers(ctx); err != nil || !slices.Equal(got, want) {
				return fmt.Errorf("they are %v, %w", got, err)
			}
			return nil
		})
	}
	template := service(80)
	b := f.template(t, template, 0)
	f.applied(t, b)
	renumber := func(to int32, more ...corev1.ServicePort) {
		edit(t, f, service(0), "kubectl-edit", func(s *corev1.Service) { s.Spec.Ports = service(to, more...).Spec.Ports })
	}
	renumber(81, theirs)
	has(80, 90)
	f.drifted(t, b, workv1alpha1.WorkDriftRevertedReason, "Service shop/web: spec.ports[http].port changed by kubectl-edit at 2")
	f.applied(t, b)
	b.Spec.Suspension = &workv1alpha2.Suspension{}
	b.Spec.Suspension.Dispatching = ptr.To(true)
	f.carry(t, b, template)
	renumber(82, theirs)
	template.Spec.Ports[0].Port = 83
	b.Spec.Suspension = nil
	f.carry(t, b, template)
	has(83, 90)
	f.applied(t, b)
}

func testAdopted(t *testing.T, f *fleet) {
	whole := func() *appsv1.Deployment {
		d := web("nginx:1")
		d.Name, d.Spec.Replicas = "adopted", ptr.To[int32](1)
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
		return d
	}
	theirs := whole()
	theirs.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	theirs.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "yesterday"}
	if err := f.edge.Create(t.Context(), theirs, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
	template := whole()
	b := f.template(t, template, 1)
	eventually(t, "the work fails", func(ctx context.Context) error {
		work, err := f.work(ctx, b)
		if err != nil || !meta.IsStatusConditionFalse(work.Status.Conditions, workv1alpha1.WorkApplied) {
			return fmt.Errorf("%v, %w", work.Status.Conditions, err)
		}
		return nil
	})
	b.Spec.ConflictResolution = "Overwrite"
	f.carry(t, b, template)
	f.applied(t, b)
	is := whole()
	if err := f.edge.Get(t.Context(), client.ObjectKeyFromObject(is), is); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(theirs.Spec, is.Spec); diff != "" {
		t.Errorf("adoption changed it (-was +is):\n%s", diff)
	}
	if is.UID != theirs.UID {
		t.Error("it was made again")
	}
	template.Spec.Template.Spec.Containers[0].Env = template.Spec.Template.Spec.Containers[0].Env[:1]
	f.carry(t, b, template)
	eventually(t, "what Git no longer names is gone", func(ctx context.Context) error {
		if err := f.edge.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil {
			return err
		}
		if diff := cmp.Diff([]corev1.EnvVar{{Name: "A", Value: "1"}}, is.Spec.Template.Spec.Containers[0].Env); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	if is.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "yesterday" {
		t.Error("what Git never named is gone")
	}
	f.applied(t, b)
}

func testScaled(t *testing.T, f *fleet) {
	template := web("nginx:1")
	template.Name = "scaled"
	b := f.template(t, template, 2)
	f.applied(t, b)
	there := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "scaled"}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
	err := f.edge.SubResource("scale").Update(t.Context(), there, client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager"))
	if err != nil {
		t.Fatal(err)
	}
	stands := func(image string, replicas int32) {
		t.Helper()
		eventually(t, "the deployment is as wanted", func(ctx context.Context) error {
			if err := f.edge.Get(ctx, client.ObjectKeyFromObject(there), there); err != nil {
				return err
			}
			if got := there.Spec.Template.Spec.Containers[0].Image; got != image || *there.Spec.Replicas != replicas {
				return fmt.Errorf("%s, %d replicas", got, *there.Spec.Replicas)
			}
			return nil
		})
		f.applied(t, b)
	}
	stands("nginx:1", 4)
	template.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	f.carry(t, b, template)
	stands("nginx:2", 4)
	f.drifted(t, b, "", "")
	b.Spec.Replicas, b.Spec.Clusters[0].Replicas, template.Spec.Replicas = 3, 3, ptr.To[int32](3)
	f.carry(t, b, template)
	stands("nginx:2", 3) // nothing scales it any more: the member has no autoscaler
	if c, err := f.work(t.Context(), b); err != nil || c.Status.Applied[0].Replicas != nil {
		t.Errorf("applied = %v, %v", c.Status.Applied, err)
	}
}

func testByHand(t *testing.T, f *fleet) {
	manifest := func(value string) []workv1alpha1.Manifest {
		return []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"by-hand"},"data":{"key":"` + value + `"}}`)}}}
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: "by-hand"}}
	work.Spec.Workload.Manifests = manifest("1")
	if err := f.hub.Hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	has := func(want string) {
		t.Helper()
		eventually(t, "the member has "+want, func(ctx context.Context) error {
			if got, err := f.value(ctx, "by-hand"); err != nil || got != want {
				return fmt.Errorf("%q, %w", got, err)
			}
			return nil
		})
	}
	has("1")
	eventually(t, "the manifest is changed", func(ctx context.Context) error {
		if err := f.hub.Hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		work.Spec.Workload.Manifests = manifest("2")
		return f.hub.Hub.Update(ctx, work)
	})
	has("2")
	edit(t, f, config("by-hand", ""), "kubectl-edit", func(cm *corev1.ConfigMap) { cm.Data["key"] = "theirs" })
	has("2")
	if err := f.hub.Hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is gone", func(ctx context.Context) error {
		if got, err := f.value(ctx, "by-hand"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%q, %w", got, err)
		}
		return nil
	})
}

func testPullSecrets(t *testing.T, f *fleet) {
	template := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "shop", Name: "puller"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "first"}, {Name: "second"}},
	}
	b := f.template(t, template, 0)
	f.applied(t, b)
	there := &corev1.ServiceAccount{ObjectMeta: template.ObjectMeta}
	there.ResourceVersion = ""
	edit(t, f, there, "registry-helper", func(sa *corev1.ServiceAccount) {
		sa.ImagePullSecrets = append(sa.ImagePullSecrets, corev1.LocalObjectReference{Name: "theirs"})
	})
	has := func(names ...string) {
		t.Helper()
		eventually(t, "the pull secrets are as wanted", func(ctx context.Context) error {
			if err := f.edge.Get(ctx, client.ObjectKeyFromObject(there), there); err != nil {
				return err
			}
			var got []string
			for _, ref := range there.ImagePullSecrets {
				got = append(got, ref.Name)
			}
			if diff := cmp.Diff(names, got); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
		f.applied(t, b)
	}
	has("first", "second", "theirs")
	template.ImagePullSecrets = template.ImagePullSecrets[:1]
	f.carry(t, b, template)
	has("first", "theirs")
	template.ImagePullSecrets = nil
	f.carry(t, b, template)
	has("theirs")
	template.Labels = map[string]string{"more": "changes"}
	f.carry(t, b, template)
	has("theirs")
}
