package commitstatus

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/sources/forge"
)

// target is a Provider that an Alert sends the statuses of a Kustomization to.
type target struct {
	// name of the CommitStatus.
	name     string
	provider *notificationv1beta3.Provider
	alert    *notificationv1beta3.Alert
	// repository is the address that the statuses go to.
	repository string
	// revision whose commit is reported to it, and that commit. origin is what the artifact of the revision was packed from; empty
	// where the source is a repository.
	revision, origin, commit string
}

// at has the commit of a revision of the source reported, which committed is, or what its artifact was packed from.
func (t *target) at(revision, committed string) {
	t.revision, t.origin, t.commit = revision, "", commitOf(committed)
	if committed != revision {
		t.origin = committed
	}
}

// posting are the Provider types that take commit statuses; those that comment do, too, one for all of a source.
var posting = []string{
	notificationv1beta3.GiteaProvider, notificationv1beta3.GitHubProvider, notificationv1beta3.GitLabProvider,
	notificationv1beta3.BitbucketProvider, notificationv1beta3.BitbucketServerProvider, notificationv1beta3.AzureDevOpsProvider,
	gitopsv1alpha1.ProviderTypeGitNotes,
}

// Posts reports whether a Provider takes commit statuses, or comments.
func Posts(provider *notificationv1beta3.Provider) bool {
	return (slices.Contains(posting, provider.Spec.Type) || forge.Comments(provider.Spec.Type)) && !provider.Spec.Suspend && provider.DeletionTimestamp == nil
}

// alerts finds who asks for statuses, and where these go.
type alerts struct {
	hub            client.Reader
	crossNamespace bool // a Kustomization's source may stand in another namespace
	secrets        *inherited.Known
}

// in returns the Alerts of a namespace, sorted.
func (a alerts) in(ctx context.Context, namespace string) ([]notificationv1beta3.Alert, error) {
	var list notificationv1beta3.AlertList
	if err := a.hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Alerts: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b notificationv1beta3.Alert) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// targets returns where the statuses of a Kustomization go, one per Provider. All stand in the Kustomization's
// namespace. It also returns what is wrong with an Alert for which there are none; nil for nothing.
func (a alerts) targets(ctx context.Context, ks *kustomizev1.Kustomization) (out []target, fault, err error) {
	list, err := a.in(ctx, ks.Namespace)
	if err != nil {
		return nil, nil, err
	}
	taken := map[string]bool{}
	for i := range list {
		alert := &list[i]
		if !selects(alert, ks) || taken[alert.Spec.ProviderRef.Name] {
			continue
		}
		taken[alert.Spec.ProviderRef.Name] = true
		t, found, err := a.target(ctx, ks, alert)
		switch {
		case ofAlert(err):
			fault = a.secrets.Clean(alert, err)
		case err != nil:
			return nil, nil, err
		case found:
			out = append(out, t)
		}
	}
	return out, fault, nil
}

// errNoProvider says that an Alert names a Provider that is not there.
var errNoProvider = errors.New("create it, or correct the Alert")

// ofAlert reports whether an error is about an Alert or its Provider, which somebody has to mend.
func ofAlert(err error) bool { return errors.Is(err, errNoProvider) || errors.Is(err, errNoAddress) }

// comments reports whether the target is served by the comments of sources.
func (t target) comments() bool { return forge.Comments(t.provider.Spec.Type) }

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
	key := client.ObjectKey{Namespace: ks.Namespace, Name: alert.Spec.ProviderRef.Name}
	err := a.hub.Get(ctx, key, &provider)
	if client.IgnoreNotFound(err) != nil {
		return target{}, false, fmt.Errorf("read the Provider %s: %w", alert.Spec.ProviderRef.Name, err)
	}
	if err != nil {
		return target{}, false, fmt.Errorf("no commit is told of for Alert %s: the Provider %s does not exist%s: %w", alert.Name, alert.Spec.ProviderRef.Name, propagation.DidYouMean(hint.Name(ctx, a.hub, &notificationv1beta3.ProviderList{}, alert, key)), errNoProvider)
	}
	if !Posts(&provider) {
		return target{}, false, nil
	}
	repository := provider.Spec.Address
	if repository == "" {
		if repository, err = a.sourceURL(ctx, ks, provider.Name); err != nil {
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
// distinguishes "a-b" with "c" from "a" with "b-c".
func statusName(kustomization, provider string) string {
	return nameOf(kustomization, provider, kustomization+"/"+provider)
}

// sourceStatusName names the CommitStatus of a source and a Provider.
func sourceStatusName(source inventory.Source, provider string) string {
	unique := source.ObjectKey.String()
	if source.Kind != sourcev1.GitRepositoryKind {
		unique = source.Kind + "/" + unique
	}
	return nameOf(source.Name, provider, "source/"+unique+"/"+provider)
}

func nameOf(subject, provider, unique string) string {
	const longest = 120
	sum := sha256.Sum256([]byte(unique))
	return fmt.Sprintf("%s-%s-%x", cut(subject, longest), cut(provider, longest), sum[:4])
}

func cut(name string, most int) string {
	return strings.TrimRight(name[:min(len(name), most)], "-.")
}
