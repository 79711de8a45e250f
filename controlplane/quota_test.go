package controlplane_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// placed is a binding of which each replica asks for one CPU.
func placed(namespace, name string, replicas int32) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: replicas}}
	return b
}

func isExceeded(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && status.ErrStatus.Reason == workv1alpha2.BindingReasonQuotaExceeded && status.ErrStatus.Code == http.StatusForbidden
}

func TestQuotaHolds(t *testing.T) {
	e := shared.Env(t)
	namespace := e.Namespace(t)
	if err := e.Hub.Create(t.Context(), placed(namespace, "before", 2)); err != nil {
		t.Fatal(err)
	}
	limit := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}}
	limit.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10")}
	if err := e.Hub.Create(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	poll(t, "the quota is known", func() bool {
		return isExceeded(e.Hub.Create(t.Context(), placed(namespace, "much", 100), client.DryRunAll))
	})
	err := e.Hub.Create(t.Context(), placed(namespace, "much", 9))
	if want := "FederatedResourceQuota " + namespace + "/team is exceeded: cpu: 2 of 10 are used, 9 more are asked for"; !isExceeded(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %s", err, want)
	}
	const writers = 24
	results := make([]error, writers)
	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() { results[i] = e.Hub.Create(t.Context(), placed(namespace, fmt.Sprintf("b-%d", i), 1)) })
	}
	done.Wait()
	created := 0
	for _, err := range results {
		switch {
		case err == nil:
			created++
		case !isExceeded(err):
			t.Errorf("refused with %v", err)
		}
	}
	if created != 8 {
		t.Errorf("%d of %d bindings were made, want 8", created, writers)
	}
	b := placed(namespace, "before", 0)
	grow := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":[{"name":"a","replicas":3}]}}`))
	if err := e.Hub.Patch(t.Context(), b, grow); !isExceeded(err) {
		t.Errorf("growing: %v", err)
	}
	shrink := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":[{"name":"a","replicas":1}]}}`))
	if err := e.Hub.Patch(t.Context(), b, shrink); err != nil {
		t.Errorf("shrinking: %v", err)
	}
	if err := e.Hub.Create(t.Context(), placed(namespace, "last", 1)); err != nil {
		t.Errorf("what was given back is not there: %v", err)
	}
	if err := e.Hub.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	poll(t, "what was deleted is given back", func() bool { return e.Hub.Create(t.Context(), placed(namespace, "more", 1)) == nil })
	var all workv1alpha2.ResourceBindingList
	if err := e.Hub.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	used := corev1.ResourceList{}
	for i := range all.Items {
		quota.Add(used, quota.Usage(&all.Items[i].Spec))
	}
	if cpu := used[corev1.ResourceCPU]; cpu.Value() != 10 {
		t.Errorf("%s is used, want 10", cpu.String())
	}
}

// TestQuotasThatAreSwitchedOff: without the gate FederatedQuotaEnforcement a quota refuses nothing. What was stored over it
// meanwhile stays when the gate is on again, and grows no further.
func TestQuotasThatAreSwitchedOff(t *testing.T) {
	dir := t.TempDir()
	during := func(rules controlplane.Rules, do func(hub client.Client)) {
		t.Helper()
		e, err := servertest.StartBy(t.Context(), dir, rules)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Stop(); err != nil {
				t.Errorf("control plane: %v", err)
			}
		}()
		do(e.Hub)
	}
	limit := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "team"}}
	limit.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	grow := func(hub client.Client, to int) error {
		patch := fmt.Sprintf(`{"spec":{"clusters":[{"name":"a","replicas":%d}]}}`, to)
		return hub.Patch(t.Context(), placed(metav1.NamespaceDefault, "web", 0), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	during(controlplane.Rules{}, func(hub client.Client) {
		if err := hub.Create(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		poll(t, "the quota holds", func() bool {
			return isExceeded(hub.Create(t.Context(), placed(metav1.NamespaceDefault, "web", 3), client.DryRunAll))
		})
	})
	during(controlplane.Rules{IgnoreQuotas: true}, func(hub client.Client) {
		if err := errors.Join(hub.Create(t.Context(), placed(metav1.NamespaceDefault, "web", 3)), grow(hub, 4)); err != nil {
			t.Errorf("without the gate: %v", err)
		}
	})
	during(controlplane.Rules{}, func(hub client.Client) {
		poll(t, "the quota holds again", func() bool { return isExceeded(grow(hub, 5)) })
		if err := grow(hub, 3); err != nil {
			t.Errorf("it gives something back: %v", err)
		}
	})
}

func TestCustomizationsDoNotCompete(t *testing.T) {
	e := shared.Env(t)
	customization := func(name string) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.org/v1", Kind: "Thing"}
		c.Spec.Customizations.Retention = &configv1alpha1.CustomizationScript{LuaScript: "function Retain(d, o) return d end"}
		return c
	}
	first := customization("first")
	if err := e.Hub.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	remove(t, e.Hub, first.DeepCopy())
	err := e.Hub.Create(t.Context(), customization("second"))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.customizations.retention: Forbidden: the ResourceInterpreterCustomization first") {
		t.Errorf("error = %v", err)
	}
	first.SetAnnotations(map[string]string{"a": "b"})
	if err := e.Hub.Update(t.Context(), first); err != nil {
		t.Errorf("it competes with itself: %v", err)
	}
}
