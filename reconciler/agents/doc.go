// Package agents gives the agents of clusters in pull mode their identity and
// their rights.
//
// In go requests for certificates, bootstrap tokens and Clusters; out come
// approvals and refusals, each refusal with what to do about it, and for every
// cluster in pull mode the roles of its agent: its own Cluster, heartbeat,
// credentials and Works, and nothing of another's. Only requests that are exactly
// for the certificate of an agent are looked at; who may make one follows from
// RBAC on certificatesigningrequests/clusteragent and /selfclusteragent. A token
// that is good for one cluster is good for one approval. An approval by a token
// ends what earlier certificates of that name are good for. Rights go with the
// Cluster, and with a registration that none follows. The package signs nothing
// and never makes a Cluster.
package agents
