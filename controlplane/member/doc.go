// Package member is a simulated member cluster in one process: a real store, API server, controller manager and
// scheduler, and nodes and pods that only say that they run.
//
// What goes in: a name and a folder. What comes out: a Kubernetes cluster whose Deployments become ready, whose
// Jobs complete, whose Services, Ingresses and claims get addresses and volumes, and a kubeconfig for its
// administrator. What its nodes do with a pod is written in stages/*.yaml; pods with an image that starts with
// fake/ stay without it, so that there is an unhealthy application to look at. A member that is started again on
// its folder goes on where it was, on the same port.
//
// What it never does: run a container, listen beyond its bind address, or know anything of Flotilla's own kinds.
package member
