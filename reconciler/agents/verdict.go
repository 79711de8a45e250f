package agents

import (
	"errors"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// requester is the author of a request for a certificate.
type requester struct {
	user    string
	token   identity.Token // ID is empty for a requester without one
	self    bool           // the requester is the agent itself, by its certificate
	expired bool           // which has expired
	// registration is the registration that approved the agent; empty for one that was registered
	// before this was recorded.
	registration string
}

// requesterOf reads who made a request for the agent of a cluster.
func requesterOf(user string, groups []string, cluster string) requester {
	r := requester{user: user}
	if token, ok := identity.TokenOf(user, groups); ok {
		r.token = token
	}
	r.expired = user == identity.ExpiredAgent(cluster)
	r.self = r.expired || user == identity.Agent(cluster)
	return r
}

// isAgent reports whether a user is the agent of any cluster.
func isAgent(user string) bool {
	_, agent := identity.ClusterOfAgent(user)
	_, expired := identity.ClusterOfExpiredAgent(user)
	return agent || expired
}

// request is the request under judgement.
type request struct {
	uid     types.UID
	cluster string
	// id is the cluster's ID as the request names it; empty if it names none.
	id  string
	by  requester
	now time.Time
}

// facts are what a verdict depends on beyond the request.
type facts struct {
	// cluster of that name; nil if there is none.
	cluster *clusterv1alpha1.Cluster
	// twin is another cluster with the id that is claimed; nil if there is none.
	twin *clusterv1alpha1.Cluster
	// secret of the control plane's own that the agent could read; empty if there is
	// none.
	secret string
	// role of the agent of that name; nil if there is none.
	role *rbacv1.ClusterRole
	// usedBy is the UID of the request that the token was used for; empty if it
	// was not used.
	usedBy types.UID
	// properties are what the token says of the cluster, as its annotation has it.
	properties string
	// spent says that the token no longer exists.
	spent bool
	// allowed says that RBAC lets the requester have it.
	allowed bool
}

// errUndecided leaves a request to a person.
var errUndecided = errors.New("a person must decide")

// judge returns nil for a request that is to be approved, errUndecided for one
// that is left alone, and otherwise why it is refused.
func judge(r request, f facts) error {
	switch {
	case r.by.self:
		return judgeNext(r, f)
	case isAgent(r.by.user):
		return fmt.Errorf("%s may ask for its own certificate, not for that of %s", r.by.user, identity.Agent(r.cluster))
	case r.by.token.ID != "":
		return judgeToken(r, f)
	case !f.allowed:
		return errUndecided
	}
	return judgeFirst(r, f)
}

// judgeNext judges the request of an agent for its next certificate.
func judgeNext(r request, f facts) error {
	switch {
	case !f.allowed:
		return errors.New("agents may not renew their certificate here: bind the ClusterRole system:karmada:certificatesigningrequest:selfautoapprover to them")
	case f.cluster == nil:
		return fmt.Errorf("there is no cluster %s any more: register it again with a token, which flotilla token create makes", r.cluster)
	case f.cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return fmt.Errorf("the cluster %s is in push mode and has no agent", r.cluster)
	case r.by.expired && !f.cluster.DeletionTimestamp.IsZero():
		return fmt.Errorf("the cluster %s is leaving the fleet", r.cluster)
	case r.id != "" && f.cluster.Spec.ID != "" && r.id != f.cluster.Spec.ID:
		return taken(r.cluster, f.cluster.Spec.ID)
	case f.role != nil && f.role.Annotations[identity.RegisteredByAnnotation] != r.by.registration:
		return fmt.Errorf("the cluster %s was registered anew since this was asked for: what it had before is not good any more", r.cluster)
	}
	return nil
}

// judgeToken judges a request by a bootstrap token.
func judgeToken(r request, f facts) error {
	token := r.by.token
	switch {
	case !f.allowed:
		return mayNotRegister(token)
	case token.Cluster != "" && token.Cluster != r.cluster:
		return fmt.Errorf("the token %s is good for the cluster %s alone: flotilla token create --cluster-name %s makes one for this", token.ID, token.Cluster, r.cluster)
	case token.Cluster != "" && (f.spent || f.usedBy != "" && f.usedBy != r.uid):
		return fmt.Errorf("the token %s has been used: flotilla token create --cluster-name %s makes another", token.ID, r.cluster)
	case token.ClusterID != "" && !strings.EqualFold(token.ClusterID, r.id):
		return fmt.Errorf("the token %s is good for the cluster with the id %s, this one has %s", token.ID, token.ClusterID, orNone(r.id))
	}
	return judgeFirst(r, f)
}

// judgeGenerator judges a request by a bootstrap token for the certificate that
// karmadactl asks for rights with.
func judgeGenerator(token identity.Token, f facts) error {
	switch {
	case token.ID == "":
		return errUndecided
	case !f.allowed:
		return mayNotRegister(token)
	case token.Cluster != "" && (f.spent || f.usedBy != ""):
		return fmt.Errorf("the token %s has been used: flotilla token create --cluster-name %s makes another", token.ID, token.Cluster)
	}
	return nil
}

func mayNotRegister(token identity.Token) error {
	return fmt.Errorf("the token %s may not register clusters: it lacks the group %s; flotilla token create makes one that may", token.ID, identity.TokensGroup)
}

// judgeFirst judges a request for the first certificate of a registration.
func judgeFirst(r request, f facts) error {
	switch {
	case f.secret != "":
		return fmt.Errorf("the control plane has a Secret %s of its own: choose another name than %s", f.secret, r.cluster)
	case f.twin != nil:
		return fmt.Errorf("this cluster is registered as %s: flotilla %s %[1]s removes it, to give it another name", f.twin.Name, identity.Leaving(f.twin.Spec.SyncMode))
	case f.cluster != nil && !f.cluster.DeletionTimestamp.IsZero():
		return fmt.Errorf("the cluster %s is leaving the fleet: wait until it has left", r.cluster)
	case f.cluster != nil && f.cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return fmt.Errorf("the cluster %s is in the fleet in push mode: flotilla unjoin %s removes it; or choose another name", r.cluster, r.cluster)
	case f.cluster != nil && r.id != "" && f.cluster.Spec.ID != "" && f.cluster.Spec.ID != r.id:
		return taken(r.cluster, f.cluster.Spec.ID)
	case f.cluster != nil && r.by.token.Cluster == "":
		return fmt.Errorf("the cluster %s is registered already: flotilla token create --cluster-name %s makes a token that registers it anew; or choose another name", r.cluster, r.cluster)
	case f.cluster == nil && r.by.token.Cluster == "" && pending(f.role, r.now) && differs(f.role.Annotations[identity.ClusterIDAnnotation], r.id):
		return fmt.Errorf("another cluster is registering as %s: choose another name", r.cluster)
	}
	return nil
}

// taken refuses a name that another cluster has.
func taken(name, id string) error {
	return fmt.Errorf("the name %s is taken by another cluster, with the id %s: choose another name, or if that cluster is gone, flotilla unregister %s first", name, id, name)
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// differs reports whether two IDs are known and not the same.
func differs(a, b string) bool { return a != "" && b != "" && a != b }

// pendingFor is how long a cluster may take from its certificate to its Cluster.
const pendingFor = time.Hour

// pending reports whether a role is that of a registration that may still come to
// its end.
func pending(role *rbacv1.ClusterRole, now time.Time) bool {
	if role == nil || metav1.GetControllerOfNoCopy(role) != nil {
		return false
	}
	since, err := time.Parse(time.RFC3339, role.Annotations[identity.NotBeforeAnnotation])
	return err == nil && now.Before(since.Add(pendingFor))
}
