package servertest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// awaitHousekeeping waits for what housekeeping makes of a new server, so that tests which
// count writes count their own.
func awaitHousekeeping(ctx context.Context, hub client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		var furnished, aggregated bool
		if furnished, last = namespacesAreFurnished(ctx, hub); !furnished {
			return false, nil
		}
		aggregated, last = rolesAreAggregated(ctx, hub)
		return aggregated, nil
	})
	if err != nil {
		return fmt.Errorf("housekeeping has not ended: %w (last answer: %v)", err, last)
	}
	return nil
}

// furnished waits until a namespace has what housekeeping puts into it.
func furnished(ctx context.Context, hub client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for name, obj := range map[string]client.Object{"default": &corev1.ServiceAccount{}, "kube-root-ca.crt": &corev1.ConfigMap{}} {
		err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
			err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("%s of namespace %s: %w", name, namespace, err)
		}
	}
	return nil
}

// emptied waits until what is in the namespaces that are being deleted is gone, or
// somebody holds it: housekeeping begins seconds after the deletion.
func emptied(ctx context.Context, hub client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	waiting := func(ns corev1.Namespace) bool {
		return !ns.DeletionTimestamp.IsZero() && len(ns.Status.Conditions) == 0 // they say who holds what
	}
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		var namespaces corev1.NamespaceList
		err := hub.List(ctx, &namespaces)
		return !slices.ContainsFunc(namespaces.Items, waiting), err
	})
	if err != nil {
		return fmt.Errorf("namespaces are still to be emptied: %w", err)
	}
	return nil
}

// namespacesAreFurnished reports whether each namespace has its service account and
// the authority's certificate.
func namespacesAreFurnished(ctx context.Context, hub client.Client) (bool, error) {
	namespaces, accounts, authorities := &corev1.NamespaceList{}, &corev1.ServiceAccountList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{namespaces, accounts, authorities} {
		if err := hub.List(ctx, list); err != nil {
			return false, err
		}
	}
	has := map[string]int{}
	for _, account := range accounts.Items {
		if account.Name == "default" {
			has[account.Namespace]++
		}
	}
	for _, authority := range authorities.Items {
		if authority.Name == "kube-root-ca.crt" {
			has[authority.Namespace]++
		}
	}
	return !slices.ContainsFunc(namespaces.Items, func(ns corev1.Namespace) bool {
		return ns.DeletionTimestamp == nil && has[ns.Name] < 2
	}), nil
}

// rolesAreAggregated reports whether Kubernetes' roles include ours.
func rolesAreAggregated(ctx context.Context, hub client.Client) (bool, error) {
	for role, resource := range map[string]string{"view": "works", "edit": "propagationpolicies", "admin": "federatedresourcequotas"} {
		got := &rbacv1.ClusterRole{}
		if err := hub.Get(ctx, client.ObjectKey{Name: role}, got); err != nil {
			return false, err
		}
		if !slices.ContainsFunc(got.Rules, func(rule rbacv1.PolicyRule) bool { return grants(role, resource, rule) }) {
			return false, nil
		}
	}
	return true, nil
}

// grants reports whether a rule gives a role what makes it differ from the one below.
func grants(role, resource string, rule rbacv1.PolicyRule) bool {
	verb := "create"
	if role == "view" {
		verb = "list"
	}
	known := slices.Contains(rule.APIGroups, policyv1alpha1.GroupName) || slices.Contains(rule.APIGroups, "work.karmada.io")
	return known && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
}
