package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// BeyondQuotaError says that the overrides of a namespace have a workload ask for more than
// the binding says, by which the namespace's quotas count it.
type BeyondQuotaError struct {
	// Beyond are the resources of which it would ask for more, by how much.
	Beyond corev1.ResourceList
}

// Error names the resources, and what to do.
func (e *BeyondQuotaError) Error() string {
	parts := make([]string, 0, len(e.Beyond))
	for _, name := range slices.Sorted(maps.Keys(e.Beyond)) {
		amount := e.Beyond[name]
		parts = append(parts, fmt.Sprintf("%s of %s", amount.String(), name))
	}
	return fmt.Sprintf("its OverridePolicies have it ask for %s more than the FederatedResourceQuota of its namespace counts: "+
		"change replicas and requests in the template, which is what counts", strings.Join(parts, " and "))
}

// withinQuota errs where the manifest, which overrides of its namespace have changed, asks for
// more of a resource that is limited there than the binding counts for the cluster. What
// cluster-wide overrides say is the word of those who set the quotas.
func (in *WorksInput) withinQuota(target workv1alpha2.TargetCluster, manifest *unstructured.Unstructured, p *WorkPlan) error {
	if len(in.Quotas) == 0 || len(p.Applied.Namespaced) == 0 {
		return nil
	}
	asked, err := in.asks(manifest)
	if err != nil {
		return err
	}
	counted := *in.Binding.BindingSpec()
	counted.Clusters = []workv1alpha2.TargetCluster{target}
	beyond := quota.Growth(quota.Usage(&counted), asked)
	maps.DeleteFunc(beyond, func(name corev1.ResourceName, amount apiresource.Quantity) bool {
		return !slices.ContainsFunc(in.Quotas, func(q *policyv1alpha1.FederatedResourceQuota) bool {
			return quota.Concerns(q, corev1.ResourceList{name: amount})
		})
	})
	if len(beyond) > 0 {
		return &BeyondQuotaError{Beyond: beyond}
	}
	return nil
}

// asks is what a manifest asks for in one cluster, counted as its binding is.
func (in *WorksInput) asks(manifest *unstructured.Unstructured) (corev1.ResourceList, error) {
	spec := workv1alpha2.ResourceBindingSpec{Clusters: make([]workv1alpha2.TargetCluster, 1)}
	if len(in.Binding.BindingSpec().Components) > 0 {
		parts, _, err := in.Interpreter.Components(manifest)
		if err != nil {
			return nil, fmt.Errorf("read its components: %w", err)
		}
		spec.Components = parts
		return quota.Usage(&spec), nil
	}
	replicas, requirements, _, err := in.Interpreter.Replicas(manifest)
	if err != nil {
		return nil, fmt.Errorf("read its replicas: %w", err)
	}
	spec.Clusters[0].Replicas, spec.ReplicaRequirements = replicas, requirements
	return quota.Usage(&spec), nil
}

// QuotasOf are those of all that stand in a namespace.
func QuotasOf(all []*policyv1alpha1.FederatedResourceQuota, namespace string) []*policyv1alpha1.FederatedResourceQuota {
	var out []*policyv1alpha1.FederatedResourceQuota
	for _, q := range all {
		if q.Namespace == namespace {
			out = append(out, q)
		}
	}
	return out
}
