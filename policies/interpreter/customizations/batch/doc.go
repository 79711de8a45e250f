// Package batch knows kinds whose work comes to an end, and clusters that are made
// for it: those of Volcano, Flink, Spark, Kubeflow, Ray, and Kubernetes' own groups.
//
// In go objects of these kinds and what clusters report of them; out come their
// replicas, components, health, statuses and dependencies. Such work has several
// kinds of pods, queues for room and is not moved for that.
package batch
