package admission

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return obj
}

func request(obj, old *unstructured.Unstructured, resource, subresource string) admission.Attributes {
	gvk := obj.GroupVersionKind()
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	return admission.NewAttributesRecord(obj, before, gvk, obj.GetNamespace(), obj.GetName(), gvk.GroupVersion().WithResource(resource), subresource, operation, nil, false, nil)
}

func TestAdmit(t *testing.T) {
	const head = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n"
	cases := map[string]struct {
		obj, old, resource, subresource string
		want                            string
	}{
		"what is not defaulted stays to the letter": {
			obj: head + `
metadata: {name: p, namespace: ns}
spec: {priority: 0, unknown: {to: us}, resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: ns}], placement: {clusterTolerations: []}}`,
			want: head + `
metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: new}, finalizers: [karmada.io/propagation-policy-controller]}
spec: {priority: 0, unknown: {to: us}, resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: ns}], placement: {clusterTolerations: []}}`,
		},
		"an id that a policy brings is replaced on creation": {
			obj:  head + "metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: forged}, finalizers: [a]}\nspec: {resourceSelectors: []}",
			want: head + "metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: new}, finalizers: [a, karmada.io/propagation-policy-controller]}\nspec: {resourceSelectors: []}",
		},
		"an id that an update forgets comes back": {
			obj:  head + "metadata: {name: p, namespace: ns}\nspec: {resourceSelectors: []}",
			old:  head + "metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: old}}\nspec: {resourceSelectors: []}",
			want: head + "metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: old}, finalizers: [karmada.io/propagation-policy-controller]}\nspec: {resourceSelectors: []}",
		},
		"an id that an update brings to a policy without one is replaced": {
			obj:  head + "metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: forged}}\nspec: {resourceSelectors: []}",
			old:  head + "metadata: {name: p, namespace: ns}\nspec: {resourceSelectors: []}",
			want: head + "metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: new}, finalizers: [karmada.io/propagation-policy-controller]}\nspec: {resourceSelectors: []}",
		},
		"a policy that goes away gets no finalizer": {
			obj:  head + "metadata: {name: p, namespace: ns, deletionTimestamp: \"2026-01-01T00:00:00Z\", labels: {propagationpolicy.karmada.io/permanent-id: old}}\nspec: {resourceSelectors: []}",
			old:  head + "metadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: old}}\nspec: {resourceSelectors: []}",
			want: head + "metadata: {name: p, namespace: ns, deletionTimestamp: \"2026-01-01T00:00:00Z\", labels: {propagationpolicy.karmada.io/permanent-id: old}}\nspec: {resourceSelectors: []}",
		},
		"a write to a sub-resource is left alone": {
			subresource: "status",
			obj:         head + "metadata: {name: p, namespace: ns}\nspec: {}",
			want:        head + "metadata: {name: p, namespace: ns}\nspec: {}",
		},
		"a kind that sees to it by itself is left alone": {
			resource: "works",
			obj:      "apiVersion: work.karmada.io/v1alpha1\nkind: Work\nmetadata: {name: w}\nspec: {}",
			want:     "apiVersion: work.karmada.io/v1alpha1\nkind: Work\nmetadata: {name: w}\nspec: {}",
		},
		"another kind is left alone": {
			resource: "remedies",
			obj:      "apiVersion: remedy.karmada.io/v1alpha1\nkind: Remedy\nmetadata: {name: q}",
			want:     "apiVersion: remedy.karmada.io/v1alpha1\nkind: Remedy\nmetadata: {name: q}",
		},
		"another version of a kind gets an id and is left alone else": {
			obj:  "apiVersion: policy.karmada.io/v2\nkind: PropagationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {resourceSelectors: [{kind: A}]}",
			want: "apiVersion: policy.karmada.io/v2\nkind: PropagationPolicy\nmetadata: {name: p, namespace: ns, labels: {propagationpolicy.karmada.io/permanent-id: new}, finalizers: [karmada.io/propagation-policy-controller]}\nspec: {resourceSelectors: [{kind: A}]}",
		},
		"an autoscaler gets defaults": {
			resource: "federatedhpas",
			obj:      "apiVersion: autoscaling.karmada.io/v1alpha1\nkind: FederatedHPA\nmetadata: {name: a, namespace: ns}\nspec: {maxReplicas: 3, behavior: {scaleDown: {selectPolicy: Disabled}}}",
			want: `
apiVersion: autoscaling.karmada.io/v1alpha1
kind: FederatedHPA
metadata: {name: a, namespace: ns}
spec:
  minReplicas: 1
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
  behavior:
    scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]}
    scaleDown: {selectPolicy: Disabled, policies: [{type: Percent, value: 100, periodSeconds: 15}]}`,
		},
		"a service gets an id": {
			resource: "multiclusterservices",
			obj:      "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {name: s, namespace: ns}\nspec: {types: [CrossCluster]}",
			want:     "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {name: s, namespace: ns, labels: {multiclusterservice.karmada.io/permanent-id: new}}\nspec: {types: [CrossCluster]}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.resource == "" {
				tc.resource = "propagationpolicies"
			}
			var old *unstructured.Unstructured
			if tc.old != "" {
				old = parse(t, tc.old)
			}
			obj := parse(t, tc.obj)
			plugin := NewPlugin(Options{NewID: func() string { return "new" }})
			if err := plugin.Admit(t.Context(), request(obj, old, tc.resource, tc.subresource), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, obj.Object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			once := obj.DeepCopy()
			if err := plugin.Admit(t.Context(), request(obj, once, tc.resource, tc.subresource), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once.Object, obj.Object); diff != "" {
				t.Errorf("twice is not once (-once +twice):\n%s", diff)
			}
		})
	}
}

// noMapper returns the same error for every kind.
type noMapper struct {
	meta.RESTMapper
	err error
}

func (m noMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, m.err
}

func TestLacks(t *testing.T) {
	cases := map[string]struct {
		api  policyv1alpha1.ResourceSelector
		err  error
		want bool
	}{
		"a served kind is there":                   {api: policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret"}},
		"a kind without match is lacking":          {api: policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Sekret"}, err: &meta.NoKindMatchError{}, want: true},
		"a server that cannot say is given credit": {api: policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret"}, err: errors.New("discovery is down")},
		"a version that is none is lacking":        {api: policyv1alpha1.ResourceSelector{APIVersion: "a/b/c", Kind: "Secret"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plugin := NewPlugin(Options{})
			plugin.SetRESTMapper(noMapper{err: tc.err})
			if got := plugin.lacks(tc.api); got != tc.want {
				t.Errorf("lacks = %v, want %v", got, tc.want)
			}
		})
	}
}

// While a policy is being deleted, its templates are found by its id.
func TestWhatGoesAwayKeepsItsID(t *testing.T) {
	policy := func(id, spec string) *unstructured.Unstructured {
		return parse(t, "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: ns, deletionTimestamp: \"2026-01-01T00:00:00Z\", labels: {propagationpolicy.karmada.io/permanent-id: "+id+"}}\nspec: "+spec)
	}
	plugin := NewPlugin(Options{NewID: func() string { return "new" }})
	old := policy("mine", "{resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: elsewhere}]}")
	if err := plugin.Validate(t.Context(), request(policy("another", "{resourceSelectors: []}"), old, "propagationpolicies", ""), nil); !apierrors.IsInvalid(err) {
		t.Errorf("another id: error %v, want Invalid", err)
	}
	if err := plugin.Validate(t.Context(), request(old.DeepCopy(), old, "propagationpolicies", ""), nil); err != nil {
		t.Errorf("an invalid policy cannot go away: %v", err)
	}
}

func TestValidateInitialization(t *testing.T) {
	plugin := NewPlugin(Options{})
	if plugin.ValidateInitialization() == nil {
		t.Error("a plugin without a mapper is accepted")
	}
	plugin.SetRESTMapper(noMapper{})
	if plugin.ValidateInitialization() == nil {
		t.Error("a plugin without a client is accepted")
	}
	plugin.SetDynamicClient(&dynamic.DynamicClient{})
	if plugin.ValidateInitialization() == nil {
		t.Error("a plugin without an authorizer is accepted")
	}
	plugin.SetAuthorizer(grants{})
	if err := plugin.ValidateInitialization(); err != nil {
		t.Error(err)
	}
}

// A user who could choose a permanent id would reach the objects of others.
func TestMayBringIdentity(t *testing.T) {
	for name, tc := range map[string]struct {
		user user.Info
		want bool
	}{
		"an administrator, who restores a backup": {&user.DefaultInfo{Name: "admin", Groups: []string{"system:authenticated", "system:masters"}}, true},
		"loops that run apart":                    {&user.DefaultInfo{Name: "system:serviceaccount:karmada-system:flotilla-controllers", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:karmada-system"}}, true},
		"another account beside theirs":           {&user.DefaultInfo{Name: "system:serviceaccount:karmada-system:default", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:karmada-system"}}, false},
		"a tenant":                                {&user.DefaultInfo{Name: "tenant", Groups: []string{"system:authenticated"}}, false},
		"an account of another namespace":         {&user.DefaultInfo{Name: "x", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop"}}, false},
		"an agent":                                {&user.DefaultInfo{Name: "system:karmada:agent:a", Groups: []string{"system:karmada:agents"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MayBringIdentity(tc.user); got != tc.want {
				t.Errorf("MayBringIdentity = %t, want %t", got, tc.want)
			}
		})
	}
}
