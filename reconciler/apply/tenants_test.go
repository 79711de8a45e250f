package apply_test

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
)

// password must not be shown to anyone who may not read its Secret.
const password = "correct-horse"

// allow binds a ClusterRole to a service account of the world's namespace, for a
// namespace, and returns the binding.
func (w *world) allow(account, clusterRole, namespace string) *rbacv1.RoleBinding {
	w.t.Helper()
	grant := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.namespace + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account}},
	}
	w.create(grant)
	return grant
}

// knows waits until the server decides as given whether the default account of the world's
// namespace may delete ConfigMaps there: its authorizer sees grants a moment after they are written.
func (w *world) knows(may bool) {
	w.t.Helper()
	w.until(fmt.Sprintf("known that the account may: %t", may), func() (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + w.namespace + ":default",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: "delete", Resource: "configmaps"},
		}}
		err := w.Hub.Create(w.t.Context(), review)
		return err == nil && review.Status.Allowed == may, fmt.Sprint(review.Status, err)
	})
}

// account creates a service account in the world's namespace.
func (w *world) account(name string) {
	w.t.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
}

// foreign creates a namespace of another tenant with a Secret in it.
func (w *world) foreign() string {
	w.t.Helper()
	namespace := w.Namespace(w.t)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"}, StringData: map[string]string{"token": password}})
	return namespace
}

// saysNothingOf fails if any report of a Kustomization contains a text.
func (w *world) saysNothingOf(name string, texts ...string) {
	w.t.Helper()
	reports := fmt.Sprintf("%+v", w.get(name).Status)
	w.events.mu.Lock()
	reports += strings.Join(w.events.messages, "\n")
	w.events.mu.Unlock()
	for _, text := range texts {
		if strings.Contains(reports, text) {
			w.t.Errorf("%q is told:\n%s", text, reports)
		}
	}
}

// clusterAdmin makes the namespace's default account an administrator.
const clusterAdmin = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: NAMESPACE, name: default}]
`

func TestWithoutAnAccountTheDefaultOneActs(t *testing.T) {
	w := newTenantWorld(t)
	w.kustomization("web")
	message := w.awaitReason("web", w.commit(map[string]string{"app/x.yaml": clusterAdmin}), applier.ReasonForbidden)
	if !strings.Contains(message, `User "system:serviceaccount:`+w.namespace+`:default" cannot patch resource "clusterrolebindings"`) {
		t.Errorf("message = %q, want it to say who may not do what", message)
	}
	if w.object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", w.namespace) != nil {
		t.Error("a tenant has made itself an administrator")
	}

	revision := w.commit(map[string]string{"app/x.yaml": configMaps(2)})
	message = w.awaitReason("web", revision, applier.ReasonForbidden)
	for _, want := range []string{
		`cannot patch resource "configmaps" in API group "" in the namespace "NS"`,
		"it acts as the service account NS/default, as it names no spec.serviceAccountName; to allow it: " +
			"kubectl create rolebinding NS-default-edit -n NS --clusterrole=edit --serviceaccount=NS:default",
	} {
		if !strings.Contains(strings.ReplaceAll(message, w.namespace, "NS"), want) {
			t.Errorf("message = %q, want it to say %q", message, want)
		}
	}
	w.allow("default", "edit", w.namespace)
	w.ready("web", revision)
	w.ready("web", w.commit(map[string]string{"app/x.yaml": configMaps(1)}))
	if w.configMap("config-00") == nil || w.configMap("config-01") != nil {
		t.Error("the account may edit, and what left the revision was not pruned")
	}
}

// TestAllThatIsMissingIsReportedAtOnce: the hint lists all rights that an account lacks at once, even
// if the message names fewer objects.
func TestAllThatIsMissingIsReportedAtOnce(t *testing.T) {
	w := newTenantWorld(t)
	w.kustomization("web")
	const role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reads, namespace: NAMESPACE}\n"
	const namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE}\n"
	message := w.awaitReason("web", w.commit(map[string]string{"app/x.yaml": configMaps(4) + role + namespace}), applier.ReasonForbidden)
	message = strings.ReplaceAll(message, w.namespace, "NS")
	const want = "; and 3 more objects: it acts as the service account NS/default, as it names no spec.serviceAccountName; " +
		"a Namespace is an administrator's to write: take NS out of these files, and have him make it if it is not there (kubectl create namespace NS), or apply it by a Kustomization of his own; " +
		"to allow the rest: kubectl create rolebinding NS-default-admin -n NS --clusterrole=admin --serviceaccount=NS:default"
	if !strings.HasSuffix(message, want) {
		t.Errorf("message = %q, want it to end with %q", message, want)
	}
}

// TestAnAccountThatIsNotThere: the hint proposes no rights for a mistyped account.
func TestAnAccountThatIsNotThere(t *testing.T) {
	w := newTenantWorld(t)
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.ServiceAccountName = "deploier" })
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	message := strings.ReplaceAll(w.awaitReason("web", revision, applier.ReasonForbidden), w.namespace, "NS")
	const want = ": it acts as the service account NS/deploier, as spec.serviceAccountName says; there is no such account in the namespace NS: " +
		"create it (kubectl create serviceaccount deploier -n NS), or name another one in spec.serviceAccountName"
	if !strings.HasSuffix(message, want) {
		t.Errorf("message = %q, want it to end with %q", message, want)
	}
	w.account("deploier")
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	w.until("it proposes a right", func() (bool, string) {
		message := w.awaitReason("web", revision, applier.ReasonForbidden)
		return strings.Contains(message, "; to allow it: "), message
	})
}

func TestWhatAnAccountMayNotDeleteStays(t *testing.T) {
	w := newTenantWorld(t)
	grant := w.allow("default", "edit", w.namespace)
	w.knows(true)
	w.kustomization("web")
	w.ready("web", w.commit(map[string]string{"app/x.yaml": configMaps(2)}))
	if err := w.Hub.Delete(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	w.knows(false)
	if err := w.Hub.Delete(t.Context(), w.get("web")); err != nil {
		t.Fatal(err)
	}
	w.until("the Kustomization gone", func() (bool, string) {
		var ks kustomizev1.Kustomization
		err := w.Hub.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "web"}, &ks)
		return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprint(ks.Status.Conditions)
	})
	if w.configMap("config-00") == nil || w.configMap("config-01") == nil {
		t.Error("objects were deleted by an account that may not delete them")
	}
	w.reported("web", meta.ReconciliationSucceededReason, meta.PruneFailedReason)
	w.events.mu.Lock()
	defer w.events.mu.Unlock()
	last := strings.ReplaceAll(w.events.messages[len(w.events.messages)-1], w.namespace, "NS")
	for _, want := range []string{"2 objects stay", "ConfigMap/NS/config-00", `cannot delete resource "configmaps"`} {
		if !strings.Contains(last, want) {
			t.Errorf("event = %q, want it to say %q", last, want)
		}
	}
}

// TestAnAccountOfANameThatNoneCanHave: such an account is refused, is not put into a command that
// people may copy, and does not keep its Kustomization from being deleted.
func TestAnAccountOfANameThatNoneCanHave(t *testing.T) {
	w := newTenantWorld(t)
	w.allow("default", "edit", w.namespace)
	w.kustomization("web")
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	w.ready("web", revision)
	w.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.ServiceAccountName = "x/y; exit 3" })
	if message := w.awaitReason("web", revision, kustomizations.ReasonInvalidAccount); strings.Contains(message, "kubectl") {
		t.Errorf("message = %q, want no command in it", message)
	}
	w.awaitReason("web", w.commit(map[string]string{"app/x.yaml": configMaps(2)}), kustomizations.ReasonInvalidAccount) // which says so of the commit that it is at
	if err := w.Hub.Delete(t.Context(), w.get("web")); err != nil {
		t.Fatal(err)
	}
	w.until("the Kustomization gone", func() (bool, string) {
		var ks kustomizev1.Kustomization
		err := w.Hub.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "web"}, &ks)
		return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprint(ks.Status.Conditions)
	})
	if w.configMap("config-00") == nil {
		t.Error("an object was deleted that its account did not apply")
	}
}

// guessing returns an expression whose error contains the value that it reads.
func guessing(kind string) []kustomize.CustomHealthCheck {
	return []kustomize.CustomHealthCheck{{
		APIVersion: "v1", Kind: kind,
		HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "data[string(base64.decode(data.token))] == ''"},
	}}
}

func TestHealthIsReadAsTheAccount(t *testing.T) {
	w := newTenantWorld(t)
	theirs := w.foreign()
	w.allow("default", "edit", w.namespace)
	revision := w.commit(map[string]string{"token/x.yaml": named("a"), "nothing/x.yaml": named("b")})
	for _, name := range []string{"token", "nothing"} {
		w.kustomization(name, in("./"+name), func(spec *kustomizev1.KustomizationSpec) {
			spec.HealthChecks = []meta.NamespacedObjectKindReference{{APIVersion: "v1", Kind: "Secret", Namespace: theirs, Name: name}}
			spec.HealthCheckExprs = guessing("Secret")
			spec.Timeout = &metav1.Duration{Duration: 2_000_000_000}
		})
		message := w.awaitReason(name, revision, meta.HealthCheckFailedReason)
		want := `User "system:serviceaccount:` + w.namespace + `:default" cannot get resource "secrets" in API group "" in the namespace "` + theirs + `"`
		if !strings.Contains(message, want) {
			t.Errorf("message about %s = %q, want it to say %q", name, message, want)
		}
		w.saysNothingOf(name, password)
	}

	reads := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	w.create(reads)
	w.allow("default", reads.Name, theirs)
	w.annotate("token", meta.ReconcileRequestAnnotation, "now")
	w.until("the expression judges what the account may read", func() (bool, string) {
		message := w.awaitReason("token", revision, meta.HealthCheckFailedReason)
		return strings.Contains(message, "spec.healthCheckExprs[0].current"), message
	})
	w.saysNothingOf("token", password)
}

func TestWhatIsSkippedIsReadAsTheAccount(t *testing.T) {
	for _, annotation := range []string{"ssa: Ignore", "ssa: IfNotPresent", "reconcile: disabled"} {
		t.Run(annotation, func(t *testing.T) {
			w := newTenantWorld(t)
			theirs := w.foreign()
			w.allow("default", "edit", w.namespace)
			w.kustomization("web", waiting, func(spec *kustomizev1.KustomizationSpec) {
				spec.HealthCheckExprs = guessing("Secret")
			})
			revision := w.commit(map[string]string{"app/x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: " + theirs + ", annotations: {kustomize.toolkit.fluxcd.io/" + annotation + "}}\n"})
			w.awaitReason("web", revision, applier.ReasonForbidden)
			w.saysNothingOf("web", password)
		})
	}
}

func TestNamespacesAreNotReported(t *testing.T) {
	w := newTenantWorld(t)
	w.allow("default", "edit", w.namespace)
	w.kustomization("web")
	for _, namespace := range []string{w.Namespace(t), "nowhere"} {
		message := w.awaitReason("web", w.commit(map[string]string{"app/x.yaml": strings.ReplaceAll(configMaps(1), "NAMESPACE", namespace)}), applier.ReasonForbidden)
		if want := `cannot patch resource "configmaps" in API group "" in the namespace "` + namespace + `"`; !strings.Contains(message, want) {
			t.Errorf("message = %q, want it to say %q", message, want)
		}
	}
}

func TestDependenciesAreReadAsTheAccount(t *testing.T) {
	w := newTenantWorld(t)
	theirs := w.Namespace(t)
	w.create(&kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "base"},
		Spec: kustomizev1.KustomizationSpec{
			Suspend: true, Interval: metav1.Duration{Duration: 600_000_000_000},
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"},
			PostBuild: &kustomizev1.PostBuild{Substitute: map[string]string{"token": password}},
			DependsOn: []kustomizev1.DependencyReference{{Name: "secret-plan"}},
		},
	})
	w.create(&kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "secret-plan"},
		Spec: kustomizev1.KustomizationSpec{
			Suspend: true, Interval: metav1.Duration{Duration: 600_000_000_000},
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"},
			DependsOn: []kustomizev1.DependencyReference{{Name: "base"}},
		},
	})
	w.allow("default", "edit", w.namespace)
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	for _, name := range []string{"base", "nothing"} {
		w.kustomization(name, func(spec *kustomizev1.KustomizationSpec) {
			spec.DependsOn = []kustomizev1.DependencyReference{{Namespace: theirs, Name: name, ReadyExpr: "dep.spec.postBuild.substitute[dep.spec.postBuild.substitute.token] == ''"}}
		})
		message := w.awaitReason(name, revision, meta.DependencyNotReadyReason)
		want := `User "system:serviceaccount:` + w.namespace + `:default" cannot get resource "kustomizations" in API group "kustomize.toolkit.fluxcd.io" in the namespace "` + theirs + `"`
		if !strings.Contains(message, want) {
			t.Errorf("message about %s = %q, want it to say %q", name, message, want)
		}
		w.saysNothingOf(name, password, "secret-plan")
	}
	reads := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "base"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}, ResourceNames: []string{"base"}, Verbs: []string{"get"}},
	}}
	w.create(reads)
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "base"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "base"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "default"}},
	})
	w.annotate("base", meta.ReconcileRequestAnnotation, "now")
	w.until("the expression judges what the account may read", func() (bool, string) {
		message := w.awaitReason("base", revision, meta.DependencyNotReadyReason)
		return strings.Contains(message, "spec.dependsOn[0].readyExpr"), message
	})
	w.saysNothingOf("base", password, "secret-plan")
}

func TestVariablesAreReadAsTheAccount(t *testing.T) {
	w := newTenantWorld(t)
	w.account("deployer")
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vars"}, StringData: map[string]string{"token": password}})
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "deployer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
	})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "deployer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "deployer"}},
	})
	revision := w.commit(map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out, namespace: NAMESPACE}\ndata: {token: \"${token}\"}\n"})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.ServiceAccountName = "deployer"
		spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
	})
	message := w.awaitReason("web", revision, applier.ReasonForbidden)
	for _, want := range []string{
		`cannot get resource "secrets" in API group "" in the namespace "NS": it acts as the service account NS/deployer, as spec.serviceAccountName says`,
		"kubectl create role NS-deployer-get-secrets -n NS --verb=get --resource=secrets && kubectl create rolebinding",
	} {
		if !strings.Contains(strings.ReplaceAll(message, w.namespace, "NS"), want) {
			t.Errorf("message = %q, want it to say %q", message, want)
		}
	}
	if w.configMap("out") != nil {
		t.Error("a Secret was copied for an account that may not read it")
	}
	w.allow("deployer", "edit", w.namespace)
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	w.ready("web", revision)
}

func TestAnAdministratorIsNotSteeredByOthers(t *testing.T) {
	w := newWorldAs(t, shared.Env(t), nil, func(namespace string) apply.Options {
		return apply.Options{Tenancy: tenancy.Rules{AllowCrossNamespace: true, PrivilegedNamespaces: []string{namespace}}}
	})
	theirs := w.neighbour()
	revision := theirs.commit(map[string]string{"app/x.yaml": clusterAdmin})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Namespace = theirs.namespace })
	message := w.awaitReason("web", revision, applier.ReasonForbidden)
	want := "it acts as the service account " + w.namespace + "/default, as it names no spec.serviceAccountName and spec.sourceRef is in the namespace " +
		theirs.namespace + ", which --privileged-source-namespaces does not name; clusterrolebindings.rbac.authorization.k8s.io set bounds, and are an administrator's to write"
	if !strings.Contains(message, want) {
		t.Errorf("message = %q, want it to say %q", message, want)
	}
	if w.object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", theirs.namespace) != nil {
		t.Error("who may commit to a source has become an administrator")
	}
}

// A value from a Secret that the server refuses and quotes is not shown in any text.
func TestRefusedVariablesStaySecret(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vars"}, StringData: map[string]string{"token": password + " !"}})
	revision := w.commit(map[string]string{"app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out, namespace: NAMESPACE, labels: {token: \"${token}\"}}\n"})
	w.kustomization("web", func(spec *kustomizev1.KustomizationSpec) {
		spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
	})
	message := w.awaitReason("web", revision, applier.ReasonInvalidObject)
	if !strings.Contains(message, "***") {
		t.Errorf("message = %s", message)
	}
	w.saysNothingOf("web", password)
}
