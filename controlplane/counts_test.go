package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestAResourceQuotaHoldsOnTheHub: a tenant does not fill the store beyond what his
// namespace may hold.
func TestAResourceQuotaHoldsOnTheHub(t *testing.T) {
	e := servertest.New(t) // one on which nobody else defines kinds: counting waits until all are listed
	namespace := e.Namespace(t)
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	if err := e.Hub.Create(t.Context(), secret("before")); err != nil {
		t.Fatal(err)
	}
	limit := quotaOn(namespace, "tenant", map[corev1.ResourceName]string{
		"secrets": "3", "count/propagationpolicies.policy.karmada.io": "0", "requests.cpu": "0", "pods": "0",
	})
	if err := e.Hub.Create(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	eventuallyUsed(t, e, limit, "secrets", "1")

	for i := range 2 {
		if err := e.Hub.Create(t.Context(), secret(fmt.Sprintf("more-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	// As in Kubernetes, a count that was begun before may put back what admission has
	// charged since: the next one has it.
	servertest.Eventually(t, "one too many is refused", func(ctx context.Context) error {
		err := e.Hub.Create(ctx, secret("too-many"))
		if err == nil {
			return errors.Join(errors.New("it was let through"), e.Hub.Delete(ctx, secret("too-many")))
		}
		if want := "exceeded quota: tenant, requested: secrets=1, used: secrets=3, limited: secrets=3"; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("error = %w, want %s", err, want)
		}
		return nil
	})
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
	if err := e.Hub.Create(t.Context(), policy); !apierrors.IsForbidden(err) {
		t.Errorf("a kind of ours: %v", err)
	}
	// A template asks nothing of the hub: who runs it counts that.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "template"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "nginx"}}
	if err := e.Hub.Create(t.Context(), pod); err != nil {
		t.Errorf("a template: %v", err)
	}

	if err := e.Hub.Delete(t.Context(), secret("before")); err != nil {
		t.Fatal(err)
	}
	// Admission hears of the count through a watch, so a moment after a reader does.
	servertest.Eventually(t, "another takes the place of one that was deleted", func(ctx context.Context) error {
		return e.Hub.Create(ctx, secret("in-its-place"))
	})
}

// TestAQuotaThatIsCarriedLimitsMembers: on the hub it is a template like others.
func TestAQuotaThatIsCarriedLimitsMembers(t *testing.T) {
	e := servertest.New(t) // as above
	namespace := e.Namespace(t)
	limit := quotaOn(namespace, "carried", map[corev1.ResourceName]string{"configmaps": "0"})
	limit.Labels = map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "1"}
	if err := e.Hub.Create(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	other := quotaOn(namespace, "other", map[corev1.ResourceName]string{"secrets": "5"})
	if err := e.Hub.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	eventuallyUsed(t, e, other, "secrets", "0")
	limit.Status.Hard, limit.Status.Used = limit.Spec.Hard, limit.Spec.Hard // as members report it
	if err := e.Hub.Status().Update(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	if err := e.Hub.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}); err != nil {
		t.Error(err)
	}
	got := &corev1.ResourceQuota{}
	if err := e.Hub.Get(t.Context(), client.ObjectKeyFromObject(limit), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(limit.Status, got.Status); diff != "" {
		t.Errorf("what members report was counted over (-want +got):\n%s", diff)
	}
}

func quotaOn(namespace, name string, hard map[corev1.ResourceName]string) *corev1.ResourceQuota {
	out := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	out.Spec.Hard = corev1.ResourceList{}
	for what, much := range hard {
		out.Spec.Hard[what] = resource.MustParse(much)
	}
	return out
}

func eventuallyUsed(t *testing.T, e *servertest.Env, limit *corev1.ResourceQuota, what corev1.ResourceName, want string) {
	t.Helper()
	poll(t, fmt.Sprintf("%s of %s %s are counted", want, limit.Name, what), func() bool {
		got := &corev1.ResourceQuota{}
		if err := e.Hub.Get(t.Context(), client.ObjectKeyFromObject(limit), got); err != nil {
			return false
		}
		used, ok := got.Status.Used[what]
		return ok && used.String() == want
	})
}
