// Package keyservice asks services that hold keys to open those of files encrypted with SOPS: Vault (transit), and in builds for
// clouds AWS KMS, GCP KMS and Azure Key Vault.
//
// In go the data of a Secret with credentials in Flux's format, and what a file says of its key; out comes the key of the file, or an
// error in words of this package's own with the class of package sops. The services are spoken to by their documented REST
// interfaces, without the clouds' libraries, and reached by internal/egress only. No redirect is followed, and credentials of a
// cloud are sent to that cloud's hosts alone, whatever a file names. No identity of the machine or of the control plane is used.
package keyservice
