package identity

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Leaving returns the command that takes a cluster of this mode out of the fleet:
// "unjoin" in push mode, "unregister" else.
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
	// agentPrefix stands before the cluster in the common name of an agent's
	// certificate, and so in its user name.
	agentPrefix = "system:karmada:agent:"

	// ExpiredAgentsGroup is the group of agents whose certificate has expired not
	// long ago. They may ask for a new one, and nothing else.
	ExpiredAgentsGroup = "system:karmada:expired-agents"
	// expiredPrefix stands before the cluster in the name of such a user.
	expiredPrefix = "system:karmada:expired-agent:"

	// TokensGroup is the group of bootstrap tokens that may ask for the certificate
	// of an agent.
	TokensGroup = "system:bootstrappers:karmada:default-cluster-token"
	// clusterPrefix stands before the cluster in the group of a token that is good
	// for that cluster alone.
	clusterPrefix = "system:bootstrappers:flotilla:cluster:"
	// idPrefix stands before the id of the cluster in the group of a token that is
	// good for that very cluster.
	idPrefix = "system:bootstrappers:flotilla:id:"
	// tokenPrefix stands before the id of a token in its user name.
	tokenPrefix = "system:bootstrap:"
)

const (
	// Generator stands in the place of the cluster in the name by which karmadactl
	// register asks for the rights of an agent. No cluster has an agent of that name.
	Generator = "rbac-generator"
	// generatorRequest begins the name of the request for its certificate. The name of
	// the cluster follows, and something random.
	generatorRequest = "agent-rbac-generator-"
	// electionPrefix stands before the cluster in the name of the Lease by which
	// Karmada's agent is one of several.
	electionPrefix = "karmada-agent-"
)

const (
	// ClusterIDAnnotation is, on a request for a certificate, the id that the
	// requesting cluster says it has: the UID of its kube-system namespace. On the
	// role of an agent it is the id that the cluster must have.
	ClusterIDAnnotation = "registration.flotilla.io/cluster-id"
	// ClusterLabel is, on all that is made for the agent of a cluster, the cluster's name.
	ClusterLabel = "registration.flotilla.io/cluster"
	// NotBeforeAnnotation is, on the role of an agent, when its cluster was
	// registered, as RFC 3339: certificates of earlier registrations are not
	// accepted.
	NotBeforeAnnotation = "registration.flotilla.io/not-before"
	// RegisteredByAnnotation is, on the role of an agent, the UID of the request for a
	// certificate that its cluster was registered by. Under this name the control plane
	// notes on requests of agents by which registration they were let in.
	RegisteredByAnnotation = "registration.flotilla.io/registered-by"
	// UsedByAnnotation is, on the Secret of a token that is good for once, the UID
	// of the request that it was used for.
	UsedByAnnotation = "registration.flotilla.io/used-by"
)

// ImpersonatorSuffix stands after the cluster in the name of the Secret with its
// impersonator's token; the one with its own is called as the cluster is. An agent
// reads both, so no cluster may be called as another's Secret.
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

// ClusterGroup returns the group of a token that is good for one cluster.
func ClusterGroup(cluster string) string { return clusterPrefix + cluster }

// IDGroup returns the group of a token that is good for the cluster with this id.
func IDGroup(id string) string { return idPrefix + strings.ToLower(id) }

// Token is what the groups of a bootstrap token say about it.
type Token struct {
	// ID is the public part of the token.
	ID string
	// Cluster is the only cluster that the token is good for; empty means any that
	// is new. Such a token is good for once.
	Cluster string
	// ClusterID is the id that this cluster must have; empty means any.
	ClusterID string
}

// TokenOf returns the bootstrap token that a user has come with.
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

// ClusterOfRights returns the cluster that a Role, a ClusterRole or a binding of an
// agent's is for, by its name: those that are made here, and Karmada's, have the
// name of the ClusterRole, and may have more after it.
func ClusterOfRights(name string) (cluster string, ok bool) {
	cluster, rest, found := strings.Cut(strings.TrimPrefix(name, rolePrefix), roleSuffix)
	if !found || !strings.HasPrefix(name, rolePrefix) || rest != "" && rest[0] != '-' {
		return "", false
	}
	return cluster, IsClusterName(cluster)
}

// IsGenerators reports whether a request for Generator's certificate has the name that
// karmadactl gives it. cluster is the only one that it may be about; empty is any.
func IsGenerators(request, cluster string) bool {
	return strings.HasPrefix(request, generatorRequest+cluster)
}

// ElectionLease returns the name of the Lease by which the agent of a cluster that is
// Karmada's is one of several.
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
