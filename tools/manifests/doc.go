// Package manifests checks the files of deploy/ against the types of the systems that read them. It is a module of its own, so that
// the product does not depend on theirs.
package manifests
