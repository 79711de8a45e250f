package validate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "github.com/flotilla-io/flotilla/api/autoscaling/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	networkingv1alpha1 "github.com/flotilla-io/flotilla/api/networking/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/validate/network"
	"github.com/flotilla-io/flotilla/policies/validate/scaling"
)

// An Object is an object of a kind that is judged here.
type Object interface {
	metav1.Object
	runtime.Object
}

// Facts are what judging an object may depend on, beside the object.
type Facts struct {
	// AllowNoExecuteTaints accepts ClusterTaintPolicies whose taints evict.
	AllowNoExecuteTaints bool
	// Customizations are all ResourceInterpreterCustomizations there are.
	Customizations []configv1alpha1.ResourceInterpreterCustomization
}

// A Kind is what there is to do for objects of one kind, as they are written by
// users. Objects given to its functions are of the type that New returns.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural.
	Resource string
	// Identity is the objects' permanent id.
	Identity Identity
	// Finalizer is on objects until they are deleted; empty is none.
	Finalizer string
	// New returns an empty object.
	New func() Object
	// Default fills in an object that has its id. Twice is once.
	Default func(obj Object)
	// Check lists what is wrong with an object, and what is unwise; old is what it
	// was, nil on creation.
	Check func(obj, old Object, facts Facts) (field.ErrorList, []string)
}

// pointerTo is a pointer to an object of Go type T.
type pointerTo[T any] interface {
	*T
	Object
}

func kindOf[T any, P pointerTo[T]](gv schema.GroupVersion, kind, resource string, fill func(P), check func(obj, old P, facts Facts) (field.ErrorList, []string)) Kind {
	return Kind{
		GroupVersionKind: gv.WithKind(kind),
		Resource:         resource,
		New:              func() Object { return P(new(T)) },
		Default: func(obj Object) {
			if fill != nil {
				fill(obj.(P))
			}
		},
		Check: func(obj, old Object, facts Facts) (field.ErrorList, []string) {
			var before P
			if old != nil {
				before = old.(P)
			}
			return check(obj.(P), before, facts)
		},
	}
}

func (k Kind) with(label string, own bool, finalizer string) Kind {
	k.Identity, k.Finalizer = Identity{Label: label, Own: own}, finalizer
	return k
}

// Kinds lists the kinds that are judged here, but for Clusters, whose defaults
// depend on the time.
func Kinds() []Kind {
	return append(append(policyKinds(), workKinds()...), otherKinds()...)
}

func policyKinds() []Kind {
	gv := policyv1alpha1.GroupVersion
	return []Kind{
		kindOf(gv, "PropagationPolicy", "propagationpolicies",
			func(p *policyv1alpha1.PropagationPolicy) { DefaultPolicy(p, false, nil) },
			func(p, old *policyv1alpha1.PropagationPolicy, _ Facts) (field.ErrorList, []string) {
				return Policy(p, policyOrNil(old, old == nil))
			}).with(policyv1alpha1.PropagationPolicyPermanentIDLabel, true, policyv1alpha1.PropagationPolicyControllerFinalizer),
		kindOf(gv, "ClusterPropagationPolicy", "clusterpropagationpolicies",
			func(p *policyv1alpha1.ClusterPropagationPolicy) { DefaultPolicy(p, false, nil) },
			func(p, old *policyv1alpha1.ClusterPropagationPolicy, _ Facts) (field.ErrorList, []string) {
				return Policy(p, policyOrNil(old, old == nil))
			}).with(policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel, true, policyv1alpha1.ClusterPropagationPolicyControllerFinalizer),
		kindOf(gv, "OverridePolicy", "overridepolicies",
			func(o *policyv1alpha1.OverridePolicy) { DefaultOverride(o) },
			func(o, old *policyv1alpha1.OverridePolicy, _ Facts) (field.ErrorList, []string) {
				return Override(o, overrideOrNil(old, old == nil))
			}),
		kindOf(gv, "ClusterOverridePolicy", "clusteroverridepolicies",
			func(o *policyv1alpha1.ClusterOverridePolicy) { DefaultOverride(o) },
			func(o, old *policyv1alpha1.ClusterOverridePolicy, _ Facts) (field.ErrorList, []string) {
				return Override(o, overrideOrNil(old, old == nil))
			}),
		kindOf(gv, "FederatedResourceQuota", "federatedresourcequotas", nil,
			func(q, _ *policyv1alpha1.FederatedResourceQuota, _ Facts) (field.ErrorList, []string) {
				return Quota(q)
			}),
		kindOf(gv, "ClusterTaintPolicy", "clustertaintpolicies", nil,
			func(p, _ *policyv1alpha1.ClusterTaintPolicy, facts Facts) (field.ErrorList, []string) {
				return TaintPolicy(p, facts.AllowNoExecuteTaints)
			}),
	}
}

// policyOrNil keeps a nil pointer from becoming a policy that is not nil.
func policyOrNil(p policyv1alpha1.Policy, none bool) policyv1alpha1.Policy {
	if none {
		return nil
	}
	return p
}

func overrideOrNil(o policyv1alpha1.Override, none bool) policyv1alpha1.Override {
	if none {
		return nil
	}
	return o
}

func workKinds() []Kind {
	return []Kind{
		kindOf(workv1alpha1.GroupVersion, "Work", "works",
			func(w *workv1alpha1.Work) { DefaultWork(w, nil) },
			func(w, _ *workv1alpha1.Work, _ Facts) (field.ErrorList, []string) { return Work(w), nil },
		).with(workv1alpha2.WorkPermanentIDLabel, false, ""),
		kindOf(workv1alpha2.GroupVersion, "ResourceBinding", "resourcebindings",
			func(b *workv1alpha2.ResourceBinding) { DefaultBinding(b) },
			func(b, _ *workv1alpha2.ResourceBinding, _ Facts) (field.ErrorList, []string) { return Binding(b), nil },
		).with(workv1alpha2.ResourceBindingPermanentIDLabel, false, ""),
		kindOf(workv1alpha2.GroupVersion, "ClusterResourceBinding", "clusterresourcebindings",
			func(b *workv1alpha2.ClusterResourceBinding) { DefaultBinding(b) },
			func(b, _ *workv1alpha2.ClusterResourceBinding, _ Facts) (field.ErrorList, []string) {
				return Binding(b), nil
			},
		).with(workv1alpha2.ClusterResourceBindingPermanentIDLabel, false, ""),
	}
}

func otherKinds() []Kind {
	return []Kind{
		kindOf(configv1alpha1.GroupVersion, "ResourceInterpreterCustomization", "resourceinterpretercustomizations", nil,
			func(c, _ *configv1alpha1.ResourceInterpreterCustomization, facts Facts) (field.ErrorList, []string) {
				return Customization(c, facts.Customizations)
			}),
		kindOf(configv1alpha1.GroupVersion, "ResourceInterpreterWebhookConfiguration", "resourceinterpreterwebhookconfigurations", nil,
			func(c, _ *configv1alpha1.ResourceInterpreterWebhookConfiguration, _ Facts) (field.ErrorList, []string) {
				return Webhooks(c)
			}),
		kindOf(networkingv1alpha1.GroupVersion, "MultiClusterIngress", "multiclusteringresses", nil,
			func(i, _ *networkingv1alpha1.MultiClusterIngress, _ Facts) (field.ErrorList, []string) {
				return network.Ingress(i)
			}),
		kindOf(networkingv1alpha1.GroupVersion, "MultiClusterService", "multiclusterservices", nil,
			func(s, old *networkingv1alpha1.MultiClusterService, _ Facts) (field.ErrorList, []string) {
				return network.Service(s, old)
			}).with(networkingv1alpha1.MultiClusterServicePermanentIDLabel, false, ""),
		kindOf(autoscalingv1alpha1.GroupVersion, "FederatedHPA", "federatedhpas", scaling.DefaultAutoscaler,
			func(a, _ *autoscalingv1alpha1.FederatedHPA, _ Facts) (field.ErrorList, []string) {
				return scaling.Autoscaler(a)
			}),
		kindOf(autoscalingv1alpha1.GroupVersion, "CronFederatedHPA", "cronfederatedhpas", scaling.DefaultCron,
			func(a, _ *autoscalingv1alpha1.CronFederatedHPA, _ Facts) (field.ErrorList, []string) {
				return scaling.Cron(a)
			}),
	}
}
