package tenants

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// ivory is a tenant who edits the namespace of its name.
const ivory = "ivory"

const ivorys = `
apiVersion: v1
kind: Namespace
metadata: {name: ivory}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: team, namespace: ivory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ivory}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looker, namespace: ivory}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: works, namespace: karmada-es-east}
rules: [{apiGroups: [work.karmada.io], resources: [works], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: works, namespace: karmada-es-east}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: works}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ivory}]
`

// what ivory writes.
const byIvory = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: ivory}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [east]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: ivory, annotations: {propagation.flotilla.io/applied-by: '[{"user":"somebody"}]'}}
data: {value: "1"}
---
apiVersion: work.karmada.io/v1alpha1
kind: Work
metadata: {name: byhand, namespace: karmada-es-east}
spec:
  workload:
    manifests:
      - apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRoleBinding
        metadata: {name: ivory-rules}
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
        subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ivory}]
`

// what ivory may not write: the Role and the binding are the administrator's, and ivory
// would have them carried to members, one with other rules.
const notByIvory = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: roles, namespace: ivory}
spec:
  preemption: Always
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: looker}]
  placement: {clusterAffinity: {clusterNames: [east]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: team, namespace: ivory}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: team}]
  placement: {clusterAffinity: {clusterNames: [east]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: more, namespace: ivory}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: looker}]
  overrideRules:
    - overriders: {plaintext: [{path: /rules/0/verbs, operator: replace, value: ["*"]}]}
`

// TestAppliedAsTheAuthor: what a tenant has applied in a member is made there by the
// rights that it has on the control plane, while it has them, and by no others.
func TestAppliedAsTheAuthor(t *testing.T) {
	for _, obj := range parse(t, ivorys) {
		if err := the.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	tenant := asUser(t, ivory)
	for _, obj := range parse(t, byIvory) {
		eventually(t, time.Minute, "ivory writes "+obj.GetKind(), func(ctx context.Context) error { // roles take a moment
			if err := tenant.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
	}
	const author = `[{"user":"ivory"}]`
	own := workv1alpha2.WorkName("ConfigMap", "own", ivory)
	eventually(t, time.Minute, "what ivory may write is applied", func(ctx context.Context) error { return appliedAs(ctx, own, author, "") })
	for _, obj := range parse(t, notByIvory) {
		if err := tenant.Create(t.Context(), obj); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.resourceSelectors[0]") {
			t.Errorf("%s %s selects what ivory may not write: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
	eventually(t, time.Minute, "what ivory puts into a Work is refused", func(ctx context.Context) error {
		return appliedAs(ctx, "byhand", author, workv1alpha1.WorkAccountForbiddenReason)
	})
	for kind, key := range map[string]client.ObjectKey{"Role": {Namespace: ivory, Name: "looker"}, "ClusterRoleBinding": {Name: "ivory-rules"}} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind})
		if err := the.members["east"].Get(t.Context(), key, obj); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s is in the member: %v", kind, key, err)
		}
	}
	t.Run("nobody clears who wrote a Work", func(t *testing.T) {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "byhand"}}
		patch := `{"metadata":{"annotations":{"propagation.flotilla.io/applied-by":null}}}`
		if err := tenant.Patch(t.Context(), work, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		if got := work.Annotations[workv1alpha2.AppliedByAnnotation]; got != author {
			t.Errorf("applied by %q", got)
		}
	})
	t.Run("rights that are taken away count no more", func(t *testing.T) { rightsGo(t, own, author) })
}

// rightsGo takes ivory's rights, and gives them back.
func rightsGo(t *testing.T, own, author string) {
	t.Helper()
	find := func(name string) *unstructured.Unstructured {
		for _, obj := range parse(t, ivorys) {
			if obj.GetName() == name {
				return obj
			}
		}
		t.Fatalf("there is no %s", name)
		return nil
	}
	if err := the.hub.Delete(t.Context(), find("team")); err != nil {
		t.Fatal(err)
	}
	mirrored := &unstructured.UnstructuredList{}
	mirrored.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBindingList"})
	eventually(t, time.Minute, "the member gives it nothing more", func(ctx context.Context) error {
		if err := the.members["east"].List(ctx, mirrored, client.InNamespace(ivory)); err != nil || len(mirrored.Items) > 0 {
			return fmt.Errorf("there are %d bindings: %w", len(mirrored.Items), err)
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{ // it hears of what it stores a moment later
			User:               "flotilla:user:" + ivory,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ivory, Verb: "patch", Resource: "configmaps"},
		}}
		if err := the.members["east"].Create(ctx, review); err != nil || review.Status.Allowed {
			return fmt.Errorf("ivory may: %v, %w", review.Status, err)
		}
		return nil
	})
	configMap := &unstructured.Unstructured{}
	configMap.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := the.hub.Get(t.Context(), client.ObjectKey{Namespace: ivory, Name: "own"}, configMap); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"2"}}`)) // an administrator's, of what stays ivory's
	if err := the.hub.Patch(t.Context(), configMap, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "a change is refused", func(ctx context.Context) error {
		return appliedAs(ctx, own, author, workv1alpha1.WorkAccountForbiddenReason)
	})
	if err := the.hub.Create(t.Context(), find("team")); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "and made once the right is back", func(ctx context.Context) error {
		if err := appliedAs(ctx, own, author, ""); err != nil {
			return err
		}
		if err := the.members["east"].Get(ctx, client.ObjectKey{Namespace: ivory, Name: "own"}, configMap); err != nil {
			return err
		}
		if value, _, _ := unstructured.NestedString(configMap.Object, "data", "value"); value != "2" {
			return fmt.Errorf("value %q", value)
		}
		return nil
	})
}

// appliedAs says what is wrong with a Work that should be applied as its author, or
// refused with a reason.
func appliedAs(ctx context.Context, name, author, reason string) error {
	work := &workv1alpha1.Work{}
	if err := the.hub.Get(ctx, client.ObjectKey{Namespace: "karmada-es-east", Name: name}, work); err != nil {
		return err
	}
	c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	refused := c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, "flotilla:user:ivory")
	applied := c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == work.Generation
	if work.Annotations[workv1alpha2.AppliedByAnnotation] != author || reason == "" && !applied || reason != "" && !refused {
		return fmt.Errorf("applied by %s: %+v", work.Annotations[workv1alpha2.AppliedByAnnotation], work.Status.Conditions)
	}
	return nil
}

// asUser returns a client of the hub that acts as a user.
func asUser(t *testing.T, name string) client.Client {
	t.Helper()
	config, err := the.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = rest.NoWarnings{}
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	out, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
