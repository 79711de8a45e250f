package commitstatus

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/expression"
)

// target is a Provider that an Alert sends the statuses of a Kustomization to.
type target struct {
	// name of the CommitStatus.
	name     string
	provider *notificationv1beta3.Provider
	alert    *notificationv1beta3.Alert
	// repository is the address that the statuses go to.
	repository string
}

// posting are the Provider types that take commit statuses.
var posting = []string{
	notificationv1beta3.GiteaProvider, notificationv1beta3.GitHubProvider, notificationv1beta3.GitLabProvider, gitopsv1alpha1.ProviderTypeGitNotes,
}

// Posts reports whether a Provider takes commit statuses.
func Posts(provider *notificationv1beta3.Provider) bool {
	return slices.Contains(posting, provider.Spec.Type) && !provider.Spec.Suspend && provider.DeletionTimestamp == nil
}

// alerts finds who asks for statuses, and where these go.
type alerts struct {
	hub            client.Reader
	crossNamespace bool // a Kustomization's source may stand in another namespace
}

// targets returns where the statuses of a Kustomization go, one per Provider.
// All stand in the Kustomization's namespace.
func (a alerts) targets(ctx context.Context, ks *kustomizev1.Kustomization) ([]target, error) {
	var list notificationv1beta3.AlertList
	if err := a.hub.List(ctx, &list, client.InNamespace(ks.Namespace)); err != nil {
		return nil, fmt.Errorf("list Alerts: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b notificationv1beta3.Alert) int { return strings.Compare(a.Name, b.Name) })
	var out []target
	taken := map[string]bool{}
	for i := range list.Items {
		alert := &list.Items[i]
		if !selects(alert, ks) || taken[alert.Spec.ProviderRef.Name] {
			continue
		}
		taken[alert.Spec.ProviderRef.Name] = true
		t, found, err := a.target(ctx, ks, alert)
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, t)
		}
	}
	return out, nil
}

// selects reports whether an Alert of the Kustomization's namespace asks for it.
func selects(alert *notificationv1beta3.Alert, ks *kustomizev1.Kustomization) bool {
	if alert.Spec.Suspend || alert.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(alert.Spec.EventSources, func(ref notificationv1.CrossNamespaceObjectReference) bool {
		switch {
		case ref.Kind != kustomizev1.KustomizationKind, ref.Namespace != "" && ref.Namespace != ks.Namespace:
			return false
		case ref.Name == ks.Name:
			return true
		case ref.Name != "*":
			return false
		}
		for key, value := range ref.MatchLabels {
			if ks.Labels[key] != value {
				return false
			}
		}
		return true
	})
}

func (a alerts) target(ctx context.Context, ks *kustomizev1.Kustomization, alert *notificationv1beta3.Alert) (target, bool, error) {
	var provider notificationv1beta3.Provider
	err := a.hub.Get(ctx, client.ObjectKey{Namespace: ks.Namespace, Name: alert.Spec.ProviderRef.Name}, &provider)
	if client.IgnoreNotFound(err) != nil {
		return target{}, false, fmt.Errorf("read the Provider %s: %w", alert.Spec.ProviderRef.Name, err)
	}
	if err != nil || !Posts(&provider) {
		return target{}, false, nil
	}
	repository := provider.Spec.Address
	if repository == "" {
		if repository, err = a.sourceURL(ctx, ks); err != nil {
			return target{}, false, err
		}
	}
	return target{
		name: statusName(ks.Name, provider.Name), provider: &provider, alert: alert, repository: withoutUser(repository),
	}, repository != "", nil
}

// withoutUser removes a password from an address; a user name alone stays, as
// ssh needs it.
func withoutUser(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return address
	}
	host, path, _ := strings.Cut(rest, "/")
	user, at, hasUser := cutLast(host, "@")
	if !hasUser {
		return address
	}
	user, _, _ = strings.Cut(user, ":")
	if strings.HasPrefix(scheme, "http") {
		return scheme + "://" + at + "/" + path
	}
	return scheme + "://" + user + "@" + at + "/" + path
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// statusName names the CommitStatus of a Kustomization and a Provider. The hash
// tells "a-b" with "c" from "a" with "b-c".
func statusName(kustomization, provider string) string {
	const longest = 120
	sum := sha256.Sum256([]byte(kustomization + "/" + provider))
	return fmt.Sprintf("%s-%s-%x", cut(kustomization, longest), cut(provider, longest), sum[:4])
}

func cut(name string, most int) string {
	return strings.TrimRight(name[:min(len(name), most)], "-.")
}

// contextOf names the status on the forge: by the Provider's expression, or as
// Flux does, in lower case.
func contextOf(ctx context.Context, expressions *expression.Compiler, ks *kustomizev1.Kustomization, t target, v verdict) (string, error) {
	text := t.provider.Spec.CommitStatusExpr
	if text == "" {
		first, _, _ := strings.Cut(string(t.provider.UID), "-")
		return strings.ToLower(kustomizev1.KustomizationKind + "/" + ks.Name + "/" + first), nil
	}
	expr, err := expressions.Compile(ctx, text, nil, "event", "provider", "alert")
	if err != nil {
		return "", fmt.Errorf("provider %s: spec.commitStatusExpr: %w", t.provider.Name, err)
	}
	vars := map[string]any{"event": eventFor(ks, v)}
	for name, obj := range map[string]any{"provider": t.provider, "alert": t.alert} {
		if vars[name], err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			return "", fmt.Errorf("read the %s: %w", name, err)
		}
	}
	name, err := expr.Text(ctx, vars, nil)
	switch {
	case err != nil:
		return "", fmt.Errorf("provider %s: spec.commitStatusExpr: %w", t.provider.Name, err)
	case name == "" || len(name) > maxContext:
		return "", fmt.Errorf("provider %s: spec.commitStatusExpr: gives %d characters, want 1 to %d", t.provider.Name, len(name), maxContext)
	default:
		return name, nil
	}
}

// maxContext is what forges take.
const maxContext = 255

// eventFor is the event that an expression sees, in the shape that Flux gives
// it.
func eventFor(ks *kustomizev1.Kustomization, v verdict) map[string]any {
	severity := "info"
	if v.state == gitopsv1alpha1.CommitFailure || v.state == gitopsv1alpha1.CommitError {
		severity = "error"
	}
	return map[string]any{
		"involvedObject": map[string]any{
			"apiVersion": kustomizev1.GroupVersion.String(), "kind": kustomizev1.KustomizationKind,
			"namespace": ks.Namespace, "name": ks.Name, "uid": string(ks.UID),
		},
		"severity":            severity,
		"message":             v.description,
		"metadata":            map[string]any{"revision": v.revision},
		"reportingController": "flotilla",
	}
}
