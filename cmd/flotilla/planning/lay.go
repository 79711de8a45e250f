package planning

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/planning/snapshot"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// key is what makes two objects the same.
type key struct{ group, kind, namespace, name string }

func keyOf(obj interface {
	GetNamespace() string
	GetName() string
}, gvk schema.GroupVersionKind) key {
	return key{gvk.Group, gvk.Kind, obj.GetNamespace(), obj.GetName()}
}

func keyOfObject(obj *unstructured.Unstructured) key { return keyOf(obj, obj.GroupVersionKind()) }

func keyOfPolicy(obj runtime.Object, namespace, name string) key {
	k := key{group: policyv1alpha1.GroupVersion.Group, namespace: namespace, name: name}
	switch obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		k.kind = policyv1alpha1.ResourceKindPropagationPolicy
	case *policyv1alpha1.ClusterPropagationPolicy:
		k.kind = policyv1alpha1.ResourceKindClusterPropagationPolicy
	case *policyv1alpha1.OverridePolicy:
		k.kind = policyv1alpha1.ResourceKindOverridePolicy
	case *policyv1alpha1.ClusterOverridePolicy:
		k.kind = policyv1alpha1.ResourceKindClusterOverridePolicy
	case *policyv1alpha1.FederatedResourceQuota:
		k.kind = "FederatedResourceQuota"
	}
	return k
}

// without returns a fleet without some of its objects.
func without(in plan.FleetInput, gone func(key, metav1.Object) bool) plan.FleetInput {
	in.Templates = slices.DeleteFunc(slices.Clone(in.Templates), func(t *unstructured.Unstructured) bool { return gone(keyOfObject(t), t) })
	in.Policies = slices.DeleteFunc(slices.Clone(in.Policies), func(p policyv1alpha1.Policy) bool {
		return gone(keyOfPolicy(p, p.GetNamespace(), p.GetName()), p)
	})
	in.Overrides = slices.DeleteFunc(slices.Clone(in.Overrides), func(o policyv1alpha1.Override) bool {
		return gone(keyOfPolicy(o, o.GetNamespace(), o.GetName()), o)
	})
	in.Quotas = slices.DeleteFunc(slices.Clone(in.Quotas), func(q *policyv1alpha1.FederatedResourceQuota) bool {
		return gone(keyOfPolicy(q, q.Namespace, q.Name), q)
	})
	return in
}

// with returns a fleet with objects of files, each in the place of the one that the fleet has, of which it keeps what
// the control plane has put there. Values of Secrets are withheld where the fleet's are, if it is compared with the files.
func with(in plan.FleetInput, objects []*unstructured.Unstructured, compared bool) (plan.FleetInput, error) {
	stored := map[key]*unstructured.Unstructured{}
	for _, t := range in.Templates {
		stored[keyOfObject(t)] = t
	}
	ids := map[key]map[string]string{}
	for _, p := range in.Policies {
		ids[keyOfPolicy(p, p.GetNamespace(), p.GetName())] = p.GetLabels()
	}
	laid := map[key]bool{}
	for _, obj := range objects {
		laid[keyOfObject(obj)] = true
	}
	in = without(in, func(k key, _ metav1.Object) bool { return laid[k] })
	for _, obj := range objects {
		was := stored[keyOfObject(obj)]
		if obj = obj.DeepCopy(); compared && was != nil && isSecret(obj) {
			withhold(obj, was)
		}
		if err := add(&in, obj, was, ids[keyOfObject(obj)]); err != nil {
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
	case "FederatedResourceQuota":
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
	for _, name := range owners {
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
	for _, name := range owners {
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
