// Package quotashare has clusters keep to their shares of FederatedResourceQuotas.
//
// It reads FederatedResourceQuotas, Clusters and their execution namespaces, and writes a Work
// for each cluster that has joined and has a share: a ResourceQuota of the quota's namespace
// and name. It deletes that Work when the cluster has a share no more, and when the quota
// goes. A Work of that name which is not its own it leaves alone: a ResourceQuota that a
// policy carries has precedence. What goes wrong it says by an Event on the quota, and a
// namespace that never leaves the hub gets no shares. It writes to no member and no status.
package quotashare
