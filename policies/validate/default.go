package validate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// defaultGrace is how long a workload that fails over gracefully may keep
// running where it was, in seconds.
const defaultGrace = 600

// defaultToleration is how long a workload may be unhealthy until it fails over,
// in seconds.
const defaultToleration = 300

// DefaultPolicy fills in p, and replaces the former names of purge modes. On
// creation p gets the permanent id that newID returns, whatever it came with,
// and its finalizer.
func DefaultPolicy(p policyv1alpha1.Policy, create bool, newID func() string) {
	spec := p.PropagationSpec()
	defaultSelectors(spec.ResourceSelectors, p.GetNamespace())
	for i := range spec.Placement.SpreadConstraints {
		c := &spec.Placement.SpreadConstraints[i]
		if c.SpreadByField == "" && c.SpreadByLabel == "" {
			c.SpreadByField = policyv1alpha1.SpreadByFieldCluster
		}
		if c.MinGroups == 0 {
			c.MinGroups = 1
		}
	}
	spec.PropagateDeps = propagation.TakesAlong(spec)
	if s := spec.Placement.ReplicaScheduling; s != nil &&
		s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided && s.ReplicaDivisionPreference == "" {
		s.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceWeighted
	}
	renameModes(spec.Failover)
	if f := spec.Failover; f != nil && f.Application != nil &&
		f.Application.PurgeMode == policyv1alpha1.PurgeModeGracefully && f.Application.GracePeriodSeconds == nil {
		f.Application.GracePeriodSeconds = ptr.To[int32](defaultGrace)
	}
	if create {
		label, finalizer := policyKeys(p)
		setLabel(p, label, newID())
		addFinalizer(p, finalizer)
	}
}

func policyKeys(p policyv1alpha1.Policy) (label, finalizer string) {
	if p.GetNamespace() == "" {
		return policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyControllerFinalizer
	}
	return policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.PropagationPolicyControllerFinalizer
}

// DefaultOverride fills in o.
func DefaultOverride(o policyv1alpha1.Override) {
	defaultSelectors(o.OverrideSpec().ResourceSelectors, o.GetNamespace())
}

// defaultSelectors makes selectors of a namespaced policy select in its own
// namespace.
func defaultSelectors(selectors []policyv1alpha1.ResourceSelector, namespace string) {
	for i := range selectors {
		if selectors[i].Namespace == "" {
			selectors[i].Namespace = namespace
		}
	}
}

// DefaultBinding fills in what the schema of b says where b says nothing, and
// replaces the former names of purge modes.
func DefaultBinding(b workv1alpha2.Binding) {
	spec := b.BindingSpec()
	if spec.ConflictResolution == "" {
		spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	if p := spec.Placement; p != nil && p.ReplicaScheduling != nil && p.ReplicaScheduling.ReplicaSchedulingType == "" {
		p.ReplicaScheduling.ReplicaSchedulingType = policyv1alpha1.ReplicaSchedulingTypeDivided
	}
	renameModes(spec.Failover)
	renameModesOfTasks(spec.GracefulEvictionTasks)
	if f := spec.Failover; f != nil {
		defaultFailover(f)
	}
}

func defaultFailover(f *policyv1alpha1.FailoverBehavior) {
	if app := f.Application; app != nil {
		if app.PurgeMode == "" {
			app.PurgeMode = policyv1alpha1.PurgeModeGracefully
		}
		if app.DecisionConditions.TolerationSeconds == nil {
			app.DecisionConditions.TolerationSeconds = ptr.To[int32](defaultToleration)
		}
	}
	if cluster := f.Cluster; cluster != nil && cluster.PurgeMode == "" {
		cluster.PurgeMode = policyv1alpha1.PurgeModeGracefully
	}
}

func setLabel(obj metav1.Object, key, value string) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	obj.SetLabels(labels)
}

func addFinalizer(obj metav1.Object, finalizer string) {
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		obj.SetFinalizers(append(obj.GetFinalizers(), finalizer))
	}
}
