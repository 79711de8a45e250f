package forecast

import (
	"context"
	"encoding/json"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// values answer what the apply loop's functions read of a control plane, from a state instead of one. They have
// Kustomizations, clusters, policies, overrides and bindings, and refuse to be asked for anything else.
type values struct {
	kustomizations map[client.ObjectKey]*kustomizev1.Kustomization
	fleet          plan.FleetInput
}

var _ client.Reader = values{}

// Get implements client.Reader.
func (v values) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	ks, is := obj.(*kustomizev1.Kustomization)
	if !is {
		return fmt.Errorf("a forecast has no %T", obj)
	}
	found := v.kustomizations[key]
	if found == nil {
		return apierrors.NewNotFound(kustomizev1.GroupVersion.WithResource("kustomizations").GroupResource(), key.String())
	}
	found.DeepCopyInto(ks)
	return nil
}

// List implements client.Reader. What it returns is shared: the functions that it is for change nothing.
func (v values) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	namespace := (&client.ListOptions{}).ApplyOptions(opts).Namespace
	switch list := list.(type) {
	case *kustomizev1.KustomizationList:
		for _, key := range sorted(v.kustomizations) {
			list.Items = append(list.Items, *v.kustomizations[key])
		}
	case *clusterv1alpha1.ClusterList:
		for _, c := range v.fleet.Clusters {
			list.Items = append(list.Items, *c)
		}
	case *policyv1alpha1.PropagationPolicyList:
		list.Items = of[policyv1alpha1.PropagationPolicy](v.fleet.Policies, namespace)
	case *policyv1alpha1.ClusterPropagationPolicyList:
		list.Items = of[policyv1alpha1.ClusterPropagationPolicy](v.fleet.Policies, "")
	case *policyv1alpha1.OverridePolicyList:
		list.Items = of[policyv1alpha1.OverridePolicy](v.fleet.Overrides, namespace)
	case *policyv1alpha1.ClusterOverridePolicyList:
		list.Items = of[policyv1alpha1.ClusterOverridePolicy](v.fleet.Overrides, "")
	case *workv1alpha2.ResourceBindingList:
		list.Items = of[workv1alpha2.ResourceBinding](v.fleet.Bindings, namespace)
	case *workv1alpha2.ClusterResourceBindingList:
		list.Items = of[workv1alpha2.ClusterResourceBinding](v.fleet.Bindings, "")
	default:
		return fmt.Errorf("a forecast has no %T", list)
	}
	return nil
}

// of returns those of a list that have a type, and are in a namespace; empty for all.
func of[T any, I interface{ GetNamespace() string }](all []I, namespace string) []T {
	var out []T
	for _, one := range all {
		if typed, is := any(one).(*T); is && (namespace == "" || one.GetNamespace() == namespace) {
			out = append(out, *typed)
		}
	}
	return out
}

// appliedField reports whether a field of a Kustomization's spec came from Git.
func appliedField(ks *kustomizev1.Kustomization, name string) bool {
	for _, entry := range ks.ManagedFields {
		if entry.Manager != applier.FieldManager || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, found, err := unstructured.NestedFieldNoCopy(fields, "f:spec", "f:"+name); found && err == nil {
			return true
		}
	}
	return false
}
