package forecast

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/validate"
	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const quotaKind = "FederatedResourceQuota"

func kindOfOverride(o policyv1alpha1.Override) string {
	if o.GetNamespace() == "" {
		return policyv1alpha1.ResourceKindClusterOverridePolicy
	}
	return policyv1alpha1.ResourceKindOverridePolicy
}

func idOfRule(kind string, obj metav1.Object) inventory.ID {
	return inventory.ID{GroupKind: policyv1alpha1.GroupVersion.WithKind(kind).GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Without returns a fleet without some of its objects.
func Without(in plan.FleetInput, gone func(inventory.ID, metav1.Object) bool) plan.FleetInput {
	in.Templates = slices.DeleteFunc(slices.Clone(in.Templates), func(t *unstructured.Unstructured) bool { return gone(inventory.IDOf(t), t) })
	in.Policies = slices.DeleteFunc(slices.Clone(in.Policies), func(p policyv1alpha1.Policy) bool { return gone(idOfRule(propagation.KindOf(p), p), p) })
	in.Overrides = slices.DeleteFunc(slices.Clone(in.Overrides), func(o policyv1alpha1.Override) bool { return gone(idOfRule(kindOfOverride(o), o), o) })
	in.Quotas = slices.DeleteFunc(slices.Clone(in.Quotas), func(q *policyv1alpha1.FederatedResourceQuota) bool { return gone(idOfRule(quotaKind, q), q) })
	return in
}

// With returns a fleet with objects of files, each in the place of the one that the fleet has, of which it keeps what
// the control plane has put there. Values of Secrets are withheld where the fleet's are, if it is compared with the files.
func With(in plan.FleetInput, objects []*unstructured.Unstructured, compared bool) (plan.FleetInput, error) {
	stored := map[inventory.ID]*unstructured.Unstructured{}
	for _, t := range in.Templates {
		stored[inventory.IDOf(t)] = t
	}
	labels := map[inventory.ID]map[string]string{}
	for _, p := range in.Policies {
		labels[idOfRule(propagation.KindOf(p), p)] = p.GetLabels()
	}
	laid := map[inventory.ID]bool{}
	for _, obj := range objects {
		laid[inventory.IDOf(obj)] = true
	}
	in = Without(in, func(id inventory.ID, _ metav1.Object) bool { return laid[id] })
	for _, obj := range objects {
		id := inventory.IDOf(obj)
		was := stored[id]
		if obj = obj.DeepCopy(); compared && was != nil && isSecret(obj) {
			withhold(obj, was)
		}
		if err := add(&in, obj, was, labels[id]); err != nil {
			return in, fmt.Errorf("%s %s cannot be read: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return in, nil
}

func add(in *plan.FleetInput, obj, stored *unstructured.Unstructured, labels map[string]string) error {
	if obj.GroupVersionKind().Group != policyv1alpha1.GroupVersion.Group {
		if stored != nil {
			adopt(obj, stored)
		}
		in.Templates = append(in.Templates, obj)
		return nil
	}
	switch obj.GetKind() {
	case policyv1alpha1.ResourceKindPropagationPolicy:
		return addPolicy(in, obj, &policyv1alpha1.PropagationPolicy{}, labels)
	case policyv1alpha1.ResourceKindClusterPropagationPolicy:
		return addPolicy(in, obj, &policyv1alpha1.ClusterPropagationPolicy{}, labels)
	case policyv1alpha1.ResourceKindOverridePolicy:
		return addOverride(in, obj, &policyv1alpha1.OverridePolicy{})
	case policyv1alpha1.ResourceKindClusterOverridePolicy:
		return addOverride(in, obj, &policyv1alpha1.ClusterOverridePolicy{})
	case quotaKind:
		q := &policyv1alpha1.FederatedResourceQuota{}
		in.Quotas = append(in.Quotas, q)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, q)
	}
	return nil // decides nothing about templates
}

func addPolicy(in *plan.FleetInput, obj *unstructured.Unstructured, p policyv1alpha1.Policy, labels map[string]string) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p); err != nil {
		return err
	}
	// One that is not stored has an id that is the same each time.
	validate.DefaultPolicy(p, true, func() string {
		return uuid.NewSHA1(uuid.NameSpaceOID, []byte("policy/"+p.GetNamespace()+"/"+p.GetName())).String()
	})
	own := maps.Clone(p.GetLabels())
	for name := range inventory.OwnerLabels(client.ObjectKey{}) {
		if value, has := labels[name]; has && own[name] == "" {
			own[name] = value
		}
	}
	if id := labels[propagation.IDLabel(p)]; id != "" {
		own[propagation.IDLabel(p)] = id
	}
	p.SetLabels(own)
	in.Policies = append(in.Policies, p)
	return nil
}

func addOverride(in *plan.FleetInput, obj *unstructured.Unstructured, o policyv1alpha1.Override) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, o); err != nil {
		return err
	}
	validate.DefaultOverride(o)
	in.Overrides = append(in.Overrides, o)
	return nil
}

// adopt gives an object of a file what the control plane has put on the one that it holds: its identity, its claim, and
// its owner where the file names none.
func adopt(obj, stored *unstructured.Unstructured) {
	obj.SetUID(stored.GetUID())
	obj.SetGeneration(stored.GetGeneration())
	obj.SetCreationTimestamp(stored.GetCreationTimestamp())
	obj.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	labels, annotations := propagation.ClaimKeys()
	propagation.Claim{Labels: only(stored.GetLabels(), labels), Annotations: only(stored.GetAnnotations(), annotations)}.Set(obj)
	own := obj.GetLabels()
	for name := range inventory.OwnerLabels(client.ObjectKey{}) {
		if value, has := stored.GetLabels()[name]; has && own[name] == "" {
			if own == nil {
				own = map[string]string{}
			}
			own[name] = value
		}
	}
	obj.SetLabels(own)
}

func isSecret(obj *unstructured.Unstructured) bool {
	return obj.GetAPIVersion() == "v1" && obj.GetKind() == "Secret"
}

func withhold(obj, stored *unstructured.Unstructured) {
	was, _ := stored.Object["data"].(map[string]any)
	data, _ := obj.Object["data"].(map[string]any)
	for name, value := range was {
		if _, has := data[name]; has && value == snapshot.Withheld {
			data[name] = snapshot.Withheld
		}
	}
}

func only(all map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, name := range keys {
		if value, has := all[name]; has {
			out[name] = value
		}
	}
	return out
}
