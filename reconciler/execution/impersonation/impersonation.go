package impersonation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/override"
)

// Writer writes what a Work asks for.
type Writer interface {
	Apply(ctx context.Context, desired *unstructured.Unstructured) (*members.Observed, error)
	Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error
}

// Member writes as the hub itself, or in the name of others.
type Member interface {
	Writer
	As(who author.Account) (members.Sender, error)
}

// Refusal is the error of a manifest that the user who applied its template may not write in the member.
type Refusal struct {
	what    string // was sent; empty where nothing was
	cluster string
	user    string // on the hub
	account string // in the member; empty if no account can stand for the user
	lack    Lack
	// overrides are the override policies that changed what was sent, each by kind and name. The Work
	// does not record which part is the template's and which is theirs.
	overrides []string
	err       error
}

// Error names the user, the member and what to do.
func (r *Refusal) Error() string {
	if r.account == "" {
		return fmt.Sprintf("nobody in cluster %s stands for %s, who applied it, and by the annotation %s of the Cluster nobody else applies it: %v; apply the template as a user or a service account with rights in its namespace",
			r.cluster, r.user, clusterv1alpha1.ApplyAsAnnotation, r.err)
	}
	if len(r.overrides) > 0 {
		changed := strings.Join(r.overrides, ", ")
		return fmt.Sprintf("%s is applied as the user %s in cluster %s, since %s applied its template or wrote in what changes it, which is %s; the cluster does not allow that: %v; where the template is not of %s, have it left out there, or delete that override, and give nobody a right for it",
			r.what, r.account, r.cluster, r.user, changed, r.err, r.user)
	}
	return fmt.Sprintf("%s is applied as the user %s in cluster %s, for %s who applied it, and the cluster does not allow that: %v; give %s the right on the control plane, by a RoleBinding, and it has it in the cluster",
		r.what, r.account, r.cluster, r.user, r.err, r.user)
}

// Unwrap returns the member's error, or why nothing was sent.
func (r *Refusal) Unwrap() error { return r.err }

// Passes reports whether the refusal may pass by itself, as the right may be on its way to the member.
func (r *Refusal) Passes() bool { return r.account != "" }

// Lack is the right that is missing.
func (r *Refusal) Lack() Lack { return r.lack }

func (r *Refusal) reason() string {
	if r.account == "" {
		return workv1alpha1.WorkUnknownAccountReason
	}
	return workv1alpha1.WorkAccountForbiddenReason
}

// errNoCluster says that the Cluster is missing, which decides as whom Works are applied.
var errNoCluster = errors.New("the Cluster is not known, which says as whom templates are applied")

// Of returns who writes the manifests of a Work: the hub, or its authors if the Cluster has the annotation for that.
// The error is a *Refusal if no account in the member can stand for one of the authors.
func Of(cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, m Member) (Writer, error) {
	if cluster == nil && work.Annotations[workv1alpha2.AppliedByAnnotation] != "" {
		return nil, errNoCluster
	}
	if !access.AppliesAsAuthor(cluster) {
		return m, nil
	}
	authors, err := author.Parse(work.Annotations[workv1alpha2.AppliedByAnnotation])
	if err != nil {
		return nil, &Refusal{cluster: cluster.Name, user: "somebody", err: err}
	}
	if len(authors) == 0 {
		return m, nil
	}
	authors = author.Authors(nil).With(authors) // each once
	out := make(actors, len(authors))
	for i, one := range authors {
		account, err := one.Account()
		if err != nil {
			return nil, &Refusal{cluster: cluster.Name, user: one.User, err: err}
		}
		sender, err := m.As(account)
		if err != nil {
			return nil, err
		}
		out[i] = actor{sender: sender, cluster: cluster.Name, user: one.User, account: account, notes: work.Annotations}
	}
	return out, nil
}

// actor acts in a member as one of the authors of a Work.
type actor struct {
	sender        members.Sender
	cluster, user string
	account       author.Account
	notes         map[string]string // the annotations of the Work
}

// actors are those for all authors of a Work. The first one writes, if a dry run shows that all others could, too.
type actors []actor

// Apply implements Writer. Errors: *Refusal.
func (c actors) Apply(ctx context.Context, desired *unstructured.Unstructured) (*members.Observed, error) {
	kind, key := desired.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: desired.GetNamespace(), Name: desired.GetName()}
	for _, other := range c[1:] {
		if err := other.sender.Try(ctx, desired); err != nil {
			return nil, other.refused(kind, key, err)
		}
	}
	out, err := c[0].sender.Apply(ctx, desired)
	return out, c[0].refused(kind, key, err)
}

// Patch implements Writer. Errors: *Refusal.
func (c actors) Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error {
	return c[0].refused(gvk.GroupKind(), key, c[0].sender.Patch(ctx, gvk, key, patch))
}

// refused returns a *Refusal if the account lacks a right, and else err. A Forbidden error alone is not enough: quotas
// and webhooks refuse with the same code, but do not name the user.
func (a *actor) refused(kind schema.GroupKind, key types.NamespacedName, err error) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.account.User) {
		return err
	}
	return &Refusal{
		what: kind.Kind + " " + strings.TrimPrefix(key.String(), "/"), cluster: a.cluster, user: a.user, account: a.account.User, err: err,
		lack: lackOf(a.account, kind.Group, key.Namespace), overrides: override.Recorded(a.notes),
	}
}

// Reason returns the reason of the condition Applied for the errors of a Work's manifests, some of
// which may be nil.
func Reason(failed []error) string {
	reason := ""
	for _, err := range failed {
		var refusal *Refusal
		switch {
		case err == nil:
		case !errors.As(err, &refusal), reason != "" && reason != refusal.reason():
			return workv1alpha1.WorkAppliedFailedReason
		default:
			reason = refusal.reason()
		}
	}
	if reason == "" {
		return workv1alpha1.WorkAppliedFailedReason
	}
	return reason
}
