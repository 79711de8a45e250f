package identity

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Leaving returns the command that removes a cluster of this mode from the fleet:
// "unjoin" in push mode, "unregister" otherwise.
func Leaving(mode clusterv1alpha1.ClusterSyncMode) string {
	if mode == clusterv1alpha1.Push {
		return "unjoin"
	}
	return "unregister"
}

const (
	// AgentsGroup is the only organization in the certificate of an agent, and so
	// the group of every agent.
	AgentsGroup = "system:karmada:agents"
	// agentPrefix precedes the cluster in the common name of an agent's
	// certificate, and so in its user name.
	agentPrefix = "system:karmada:agent:"

	// ExpiredAgentsGroup is the group of agents whose certificate has expired
	// recently. They may request a new one, and nothing else.
	ExpiredAgentsGroup = "system:karmada:expired-agents"
	// expiredPrefix precedes the cluster in the user name of such an agent.
	expiredPrefix = "system:karmada:expired-agent:"

	// TokensGroup is the group of bootstrap tokens that may request the
	// certificate of an agent.
	TokensGroup = "system:bootstrappers:karmada:default-cluster-token"
	// clusterPrefix precedes the cluster in the group of a token that is valid for
	// that cluster only.
	clusterPrefix = "system:bootstrappers:flotilla:cluster:"
	// idPrefix precedes the id of the cluster in the group of a token that is
	// valid for the cluster with that id only.
	idPrefix = "system:bootstrappers:flotilla:id:"
	// tokenPrefix precedes the id of a token in its user name.
	tokenPrefix = "system:bootstrap:"
)

const (
	// Generator takes the place of the cluster in the user name with which
	// karmadactl register creates the RBAC objects of an agent. No cluster may
	// have that name.
	Generator = "rbac-generator"
	// generatorRequest is the beginning of the name of the request for its
	// certificate. The name of the cluster and a random suffix follow.
	generatorRequest = "agent-rbac-generator-"
	// electionPrefix precedes the cluster in the name of the Lease by which the
	// replicas of Karmada's agent elect a leader.
	electionPrefix = "karmada-agent-"
)

const (
	// ClusterIDAnnotation is, on a certificate request, the id that the requesting
	// cluster claims to have: the UID of its kube-system namespace. On the role of
	// an agent it is the id that the cluster must have.
	ClusterIDAnnotation = "registration.flotilla.io/cluster-id"
	// ClusterLabel is the name of the cluster, on all objects that are created for
	// its agent.
	ClusterLabel = "registration.flotilla.io/cluster"
	// NotBeforeAnnotation is, on the role of an agent, when its cluster was
	// registered, as RFC 3339: certificates from earlier registrations are not
	// accepted.
	NotBeforeAnnotation = "registration.flotilla.io/not-before"
	// RegisteredByAnnotation is, on the role of an agent, the UID of the
	// certificate request by which its cluster was registered. On certificate
	// requests of agents, the control plane records in it the registration by
	// which they were admitted.
	RegisteredByAnnotation = "registration.flotilla.io/registered-by"
	// UsedByAnnotation is, on the Secret of a token that may be used once, the UID
	// of the request that it was used for.
	UsedByAnnotation = "registration.flotilla.io/used-by"
)

// ImpersonatorSuffix follows the cluster in the name of the Secret with its
// impersonator's token; the Secret with its own token is named as the cluster. An
// agent may read both, so that no cluster may have the name of another's Secret.
const ImpersonatorSuffix = "-impersonator"

// Agent returns the user name of a cluster's agent.
func Agent(cluster string) string { return agentPrefix + cluster }

// ClusterOfAgent returns the cluster of an agent, by its user name.
func ClusterOfAgent(user string) (cluster string, ok bool) { return after(user, agentPrefix) }

// ExpiredAgent returns the user name of a cluster's agent whose certificate has
// expired.
func ExpiredAgent(cluster string) string { return expiredPrefix + cluster }

// ClusterOfExpiredAgent returns the cluster of an agent whose certificate has
// expired, by its user name.
func ClusterOfExpiredAgent(user string) (cluster string, ok bool) { return after(user, expiredPrefix) }

// ClusterGroup returns the group of a token that is valid for one cluster only.
func ClusterGroup(cluster string) string { return clusterPrefix + cluster }

// IDGroup returns the group of a token that is valid for the cluster with this id
// only.
func IDGroup(id string) string { return idPrefix + strings.ToLower(id) }

// Token is a bootstrap token, as its groups describe it.
type Token struct {
	// ID is the public part of the token.
	ID string
	// Cluster is the only cluster that the token is valid for, once; empty means
	// any new cluster.
	Cluster string
	// ClusterID is the id that this cluster must have; empty means any.
	ClusterID string
}

// TokenOf returns the bootstrap token by which a user is authenticated.
func TokenOf(user string, groups []string) (t Token, ok bool) {
	if t.ID, ok = strings.CutPrefix(user, tokenPrefix); !ok {
		return Token{}, false
	}
	for _, group := range groups {
		if cluster, bound := strings.CutPrefix(group, clusterPrefix); bound {
			t.Cluster = cluster
		}
		if id, bound := strings.CutPrefix(group, idPrefix); bound {
			t.ClusterID = id
		}
	}
	return t, true
}

// IsClusterName reports whether a cluster may have the name.
func IsClusterName(name string) bool {
	return len(name) <= clusterv1alpha1.ClusterNameMaxLength && len(validation.IsDNS1123Label(name)) == 0
}

func after(user, prefix string) (string, bool) {
	cluster, ok := strings.CutPrefix(user, prefix)
	if !ok || !IsClusterName(cluster) {
		return "", false
	}
	return cluster, true
}

// Role returns the name of an agent's ClusterRole and of its binding.
func Role(cluster string) string { return rolePrefix + cluster + roleSuffix }

const (
	rolePrefix = "system:karmada:"
	roleSuffix = ":agent"
)

// ClusterOfRole returns the cluster of an agent's ClusterRole, by its name.
func ClusterOfRole(name string) (cluster string, ok bool) {
	name, ok = strings.CutSuffix(name, roleSuffix)
	if !ok {
		return "", false
	}
	return after(name, rolePrefix)
}

// ClusterOfRights returns the cluster whose agent a Role, a ClusterRole or a
// binding is for, by its name. Those that Flotilla creates, and Karmada's, have
// the name of the ClusterRole, which a hyphen and more may follow.
func ClusterOfRights(name string) (cluster string, ok bool) {
	cluster, rest, found := strings.Cut(strings.TrimPrefix(name, rolePrefix), roleSuffix)
	if !found || !strings.HasPrefix(name, rolePrefix) || rest != "" && rest[0] != '-' {
		return "", false
	}
	return cluster, IsClusterName(cluster)
}

// IsGenerators reports whether a request for Generator's certificate has the name
// that karmadactl gives it for cluster; empty means any.
func IsGenerators(request, cluster string) bool {
	return strings.HasPrefix(request, generatorRequest+cluster)
}

// ElectionLease returns the name of the Lease by which the replicas of a
// cluster's Karmada agent elect a leader.
func ElectionLease(cluster string) string { return electionPrefix + cluster }

// SecretRole returns the name of an agent's Role, and of its binding, in the
// namespace of credentials and heartbeats.
func SecretRole(cluster string) string { return Role(cluster) + "-secret" }

// WorkRole returns the name of an agent's Role, and of its binding, in the
// namespace of the cluster's Works.
func WorkRole(cluster string) string { return Role(cluster) + "-work" }

// EventRole returns the name of an agent's Role, and of its binding, in the
// namespace of events about the Cluster.
func EventRole(cluster string) string { return Role(cluster) + "-event" }
