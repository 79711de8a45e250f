package dependency_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// wants is the annotation that says what a ConfigMap refers to in these tests:
// KIND NAMESPACE/NAME, without a namespace for what has none.
const wants = "test.flotilla.io/wants"

// anyReference lets ConfigMaps refer to whatever they name, as a customization of
// an administrator may.
func anyReference() kinds.Table {
	return kinds.Table{{Version: "v1", Kind: "ConfigMap"}: {Dependencies: func(obj kinds.Object) ([]kinds.Dependency, error) {
		kind, name, found := strings.Cut(obj.GetAnnotations()[wants], " ")
		if !found {
			return nil, nil
		}
		d := kinds.Dependency{APIVersion: "v1", Kind: kind, Name: name}
		if namespace, name, local := strings.Cut(name, "/"); local {
			d.Namespace, d.Name = namespace, name
		}
		if kind == "ClusterRole" {
			d.APIVersion = rbacv1.SchemeGroupVersion.String()
		}
		return []kinds.Dependency{d}, nil
	}}}
}

// tenants are two teams on one control plane: the fleet's namespace, and victim's.
type tenants struct {
	*fleet
	victim string
}

func newTenants(t *testing.T) *tenants {
	b := &tenants{fleet: newFleet(t, anyReference())}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "victim-"}}
	b.create(ns)
	b.victim = ns.Name
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.victim, Name: "tls"}, StringData: map[string]string{"key": "theirs"}}
	b.create(secret)
	t.Cleanup(func() { _ = client.IgnoreNotFound(b.env.Hub.Delete(b.ctx, secret)) })
	return b
}

// reach carries a ConfigMap of the fleet's namespace that refers to something, as
// a tenant would: with Overwrite, to clusters of its own choice.
func (b *tenants) reach(what string) {
	b.Helper()
	gateway := b.config("gateway")
	gateway.Annotations = map[string]string{wants: what}
	policy := b.policy("ConfigMap", "gateway", "a")
	policy.Spec.PropagateDeps, policy.Spec.ConflictResolution = true, policyv1alpha1.ConflictOverwrite
	b.create(gateway, policy)
}

// refusal is what the binding of the ConfigMap says about what is refused.
func (b *tenants) refusal() string {
	if binding := b.binding("ConfigMap", "gateway"); binding != nil {
		return binding.Annotations["propagation.flotilla.io/dependency-fault"]
	}
	return "there is no binding"
}

// TestNotFromAnotherNamespace: what a template refers to in another namespace
// stays there until that namespace grants it, leaves when the grant does, and
// brings no Overwrite along.
func TestNotFromAnotherNamespace(t *testing.T) {
	f := newTenants(t)
	f.reach("Secret " + f.victim + "/tls")
	refused := "Secret " + f.victim + "/tls does not go along: it is in another namespace than the ConfigMap. " +
		"Either a ReferenceGrant in " + f.victim + " allows from ConfigMap of " + f.ns + " to Secret tls, or a policy of its own carries it"
	eventually(f.fleet, "what is refused", refused, f.refusal)
	alone := map[string]string{"ConfigMap gateway": "a"}
	f.await(alone)
	eventually(f.fleet, "Events that say so", true, func() bool {
		return strings.Contains(strings.Join(f.events.warnings(), "\n"), "RefNotPermitted: "+refused)
	})

	f.restart()
	f.awaitIdle()
	if diff := cmp.Diff(alone, f.holds()); diff != "" {
		t.Errorf("after a restart clusters hold (-want +got):\n%s", diff)
	}

	serveReferenceGrants(f.fleet)
	grant := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"from": []any{map[string]any{"group": "", "kind": "ConfigMap", "namespace": f.ns}},
		"to":   []any{map[string]any{"group": "", "kind": "Secret", "name": "tls"}},
	}}}
	grant.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"})
	grant.SetNamespace(f.victim)
	grant.SetName("to-them")
	f.create(grant)
	f.await(map[string]string{"ConfigMap gateway": "a", "Secret tls": "a"})
	eventually(f.fleet, "what is refused", "", f.refusal)
	granted := &workv1alpha2.ResourceBinding{}
	f.check(f.env.Hub.Get(f.ctx, client.ObjectKey{Namespace: f.victim, Name: "tls-secret"}, granted))
	if got := granted.Spec.ConflictResolution; got != policyv1alpha1.ConflictAbort {
		t.Errorf("who is granted a reference says what becomes of what is in the way: %s", got)
	}

	f.awaitIdle()
	f.restart()
	f.wrote("a restart", map[string]int{})

	f.delete(grant)
	f.await(alone)
	eventually(f.fleet, "what is refused", refused, f.refusal)
}

// TestAPolicyOfItsOwn: nothing is reported about a reference that is refused where an
// administrator carries the object.
func TestAPolicyOfItsOwn(t *testing.T) {
	f := newTenants(t)
	f.reach("Secret " + f.victim + "/tls")
	eventually(f.fleet, "something is refused", true, func() bool { return strings.HasPrefix(f.refusal(), "Secret ") })
	f.create(&policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.victim, Name: "tls"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret", Name: "tls"}},
			Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("b")}}},
		},
	})
	f.await(map[string]string{"ConfigMap gateway": "a", "Secret tls": "b"})
	eventually(f.fleet, "what is refused", "", f.refusal)
}

// TestWhatAnnotationsSayIsNotNeeded: a binding that somebody wrote by hand takes
// nothing along that its template does not refer to.
func TestWhatAnnotationsSayIsNotNeeded(t *testing.T) {
	f := newTenants(t)
	f.create(f.config("own"))
	noted := `[{"apiVersion":"v1","kind":"Secret","namespace":"` + f.victim + `","name":"tls"},{"apiVersion":"v1","kind":"ConfigMap","namespace":"` + f.ns + `","name":"own"}]`
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"absent": func(*workv1alpha2.ResourceBinding) {},
		"there":  func(*workv1alpha2.ResourceBinding) {},
		"older": func(b *workv1alpha2.ResourceBinding) {
			b.Annotations[propagation.DigestAnnotation] = "of another version"
		},
		"paused": func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
				DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"nowhere"}},
			}}
		},
	} {
		b := &workv1alpha2.ResourceBinding{
			ObjectMeta: f.meta(name + "-configmap"),
			Spec: workv1alpha2.ResourceBindingSpec{
				Resource:           workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns, Name: name},
				PropagateDeps:      true,
				ConflictResolution: policyv1alpha1.ConflictOverwrite,
				Clusters:           []workv1alpha2.TargetCluster{{Name: f.cluster("a")}},
			},
		}
		b.Annotations = map[string]string{workv1alpha2.BindingDependenciesAnnotationKey: noted}
		change(b)
		if name != "absent" {
			f.create(f.config(name))
		}
		f.create(b)
	}
	want := map[string]string{"ConfigMap there": "a", "ConfigMap paused": "a"}
	f.await(want)
	f.awaitIdle()
	f.restart()
	f.awaitIdle()
	if diff := cmp.Diff(want, f.holds()); diff != "" {
		t.Errorf("clusters hold (-want +got):\n%s", diff)
	}
}

// TestNotFromTheCluster: what has no namespace goes along for templates alone that
// an administrator's policy carries.
func TestNotFromTheCluster(t *testing.T) {
	f := newTenants(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.ns + ":root"}}
	f.create(role)
	t.Cleanup(func() { _ = f.env.Hub.Delete(f.ctx, role) })
	f.reach("ClusterRole " + role.Name)
	refused := "ClusterRole " + role.Name + " does not go along: it belongs to no namespace, and no ClusterPropagationPolicy carries the ConfigMap. " +
		"A ClusterPropagationPolicy can carry either of them"
	eventually(f.fleet, "what is refused", refused, f.refusal)
	f.await(map[string]string{"ConfigMap gateway": "a"})

	administrators := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}
	f.policy("ConfigMap", "gateway", "a").Spec.DeepCopyInto(&administrators.Spec)
	administrators.Spec.PropagateDeps = true
	administrators.Spec.ResourceSelectors[0].Namespace = f.ns
	f.create(administrators)
	t.Cleanup(func() { _ = client.IgnoreNotFound(f.env.Hub.Delete(f.ctx, administrators)) })
	f.delete(&policyv1alpha1.PropagationPolicy{ObjectMeta: f.meta("configmap-gateway")})
	f.await(map[string]string{"ConfigMap gateway": "a", "ClusterRole " + role.Name: "a"})
}

// TestNamespacesOfAnAdministratorsPolicy: an administrator's policy says from
// which namespaces its templates may draw.
func TestNamespacesOfAnAdministratorsPolicy(t *testing.T) {
	f := newTenants(t)
	gateway := f.config("gateway")
	gateway.Annotations = map[string]string{wants: "Secret " + f.victim + "/tls"}
	policy := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}
	f.policy("ConfigMap", "gateway", "a").Spec.DeepCopyInto(&policy.Spec)
	policy.Spec.PropagateDeps = true
	f.create(policy, gateway)
	t.Cleanup(func() { _ = client.IgnoreNotFound(f.env.Hub.Delete(f.ctx, policy)) })
	eventually(f.fleet, "something is refused", true, func() bool { return strings.HasPrefix(f.refusal(), "Secret ") })
	f.await(map[string]string{"ConfigMap gateway": "a"})

	edit(f.fleet, policy, func(p *policyv1alpha1.ClusterPropagationPolicy) {
		p.Annotations = map[string]string{"propagation.flotilla.io/dependency-namespaces": "others," + f.victim}
	})
	f.await(map[string]string{"ConfigMap gateway": "a", "Secret tls": "a"})
	eventually(f.fleet, "what is refused", "", f.refusal)

	edit(f.fleet, policy, func(p *policyv1alpha1.ClusterPropagationPolicy) { p.Annotations = nil })
	f.await(map[string]string{"ConfigMap gateway": "a"})
}

// serveReferenceGrants has the control plane serve ReferenceGrants, until the test
// ends.
func serveReferenceGrants(f *fleet) {
	f.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "referencegrants.gateway.networking.k8s.io",
			Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "gateway.networking.k8s.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "referencegrants", Singular: "referencegrant", Kind: "ReferenceGrant", ListKind: "ReferenceGrantList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: func() *bool { yes := true; return &yes }(),
				}},
			}},
		},
	}
	f.create(crd)
	f.Cleanup(func() { // the next test must not see it go
		_ = f.env.Hub.Delete(f.ctx, crd)
		eventually(f, "ReferenceGrants are gone", true, func() bool {
			return apierrors.IsNotFound(f.env.Hub.Get(f.ctx, client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{}))
		})
	})
	eventually(f, "ReferenceGrants are served", true, func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1beta1", Kind: "ReferenceGrantList"})
		err := f.env.Hub.List(f.ctx, list)
		if err != nil && !apierrors.IsNotFound(err) {
			f.Logf("list ReferenceGrants: %v", err)
		}
		return err == nil
	})
}
