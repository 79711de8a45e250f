// Package azureblob reads containers of Azure Blob Storage by its documented REST interface, as package s3 reads buckets.
//
// In go where a container is, and credentials; out come the objects in it and their bytes, in the terms and with the errors of package s3.
// Connections are opened by internal/egress only, to hosts of Azure alone, and no redirect is followed. It writes nothing, and no error
// shows anything of a credential.
package azureblob
