package alerting

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Fault is something in an Alert or a Provider that has no effect here, or a wrong one.
type Fault struct {
	// Path is the field.
	Path string
	// Message says what of it, and what to do.
	Message string
}

// Reasons of Events of an Alert about its messages: the last of them counts.
const (
	ReasonMessageNotSent = "MessageNotSent"
	ReasonMessageSent    = "MessageSent"
)

// Purpose is what a Provider type is for.
type Purpose int

const (
	// Unserved types are Flux's, and nothing is sent to them.
	Unserved Purpose = iota
	// Messages are sent to types that show them to people, or pass them on.
	Messages
	// Commits have statuses or comments on forges of these types.
	Commits
)

// messages are the types that messages are sent to.
func messages() []string {
	return []string{
		notificationv1beta3.AlertManagerProvider, notificationv1beta3.DiscordProvider, notificationv1beta3.GenericProvider, notificationv1beta3.GenericHMACProvider,
		notificationv1beta3.GitHubDispatchProvider, notificationv1beta3.GoogleChatProvider, notificationv1beta3.GrafanaProvider, notificationv1beta3.Matrix,
		notificationv1beta3.MSTeamsProvider, notificationv1beta3.PagerDutyProvider, notificationv1beta3.SlackProvider,
	}
}

// PurposeOf returns what a Provider type is for.
func PurposeOf(kind string) Purpose {
	switch kind {
	case notificationv1beta3.GitHubProvider, notificationv1beta3.GitLabProvider, notificationv1beta3.GiteaProvider, notificationv1beta3.BitbucketProvider,
		notificationv1beta3.BitbucketServerProvider, notificationv1beta3.AzureDevOpsProvider, notificationv1beta3.GitHubPullRequestCommentProvider,
		notificationv1beta3.GitLabMergeRequestCommentProvider, notificationv1beta3.GiteaPullRequestCommentProvider, gitopsv1alpha1.ProviderTypeGitNotes:
		return Commits
	}
	if slices.Contains(messages(), kind) {
		return Messages
	}
	return Unserved
}

// OfProvider returns what has no effect in a Provider.
func OfProvider(p *notificationv1beta3.Provider) []Fault {
	if PurposeOf(p.Spec.Type) != Unserved {
		return nil
	}
	return []Fault{{"spec.type", fmt.Sprintf("%s is not served yet, and nothing is sent: use one of %s", p.Spec.Type, strings.Join(messages(), ", "))}}
}

// OfAlert returns what has no effect in an Alert. The purpose is that of its Provider, where that is known; Messages else.
func OfAlert(alert *notificationv1beta3.Alert, scope Scope, purpose Purpose) []Fault {
	var out []Fault
	for i, ref := range alert.Spec.EventSources {
		at := fmt.Sprintf("spec.eventSources[%d]", i)
		switch {
		case !slices.Contains(served(), ref.Kind):
			out = append(out, Fault{at + ".kind", fmt.Sprintf("%s is not served yet, and has no events: use %s", ref.Kind, strings.Join(served(), ", "))})
		case ref.Namespace != "" && ref.Namespace != alert.Namespace && !scope.CrossNamespace:
			out = append(out, Fault{at + ".namespace", fmt.Sprintf("%s is another namespace, of which nothing is told: put an Alert and a Provider there, or have an administrator allow it with --allow-cross-namespace-references", ref.Namespace)})
		}
	}
	if purpose != Messages {
		return out
	}
	for _, list := range []struct {
		path string
		list []string
	}{{"spec.inclusionList", alert.Spec.InclusionList}, {"spec.exclusionList", alert.Spec.ExclusionList}} {
		_, faults := expressions(list.list)
		for _, i := range slices.Sorted(maps.Keys(faults)) {
			out = append(out, Fault{fmt.Sprintf("%s[%d]", list.path, i), faults[i]})
		}
	}
	return out
}
