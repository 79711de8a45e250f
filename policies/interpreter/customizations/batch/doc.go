// Package batch holds the rules for kinds whose work comes to an end, and for
// clusters that are made for such work: those of Volcano, Flink, Spark, Kubeflow,
// Ray, and Kubernetes' own interest groups.
//
// In go objects of these kinds and what clusters report of them; out come their
// replicas, components, health, statuses and dependencies. Such workloads have
// several kinds of pods. They may wait in a queue for capacity, and are not moved
// to another cluster for that.
package batch
