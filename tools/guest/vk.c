// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-vk: have a GPU draw pictures with Vulkan, and compare all of their pixels with the
 * expected ones.  Nothing is shown.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

#include "clock.h"
#include "cmdline.h"

#define GUARD		0x5a5a5a5au	/* what a pixel must not stay */
#define FENCE_NS	60000000000ull	/* longest wait for a picture */

const char *const program_name = "mgpu-vk";

struct options {
	const char *name;
	uint32_t size;
	uint32_t work;
	uint64_t frames;
	double seconds;
	double fps;
	bool software;
};

static const char usage[] =
"usage: mgpu-vk [options]\n"
"\n"
"Draw pictures with Vulkan, compare all pixels, and print the rate each second.\n"
"\n"
"  --size N         side of the picture, pixels (256)\n"
"  --work K         copies of the picture within the GPU, for each picture (4)\n"
"  --fps N          sleep so as not to exceed N pictures/s (none)\n"
"  --frames N       stop after N pictures (never)\n"
"  --seconds S      stop after S seconds (never)\n"
"  --name NAME      name in the output (vk)\n"
"  --software       allow a device that is this system's own processors\n"
"  --help           this text\n"
"\n"
"Each second a line of key=value: frames since the start, and fps.  At the end a JSON\n"
"object.\n"
"\n"
"Exit status: 0 for success, 1 for no usable Vulkan, an error or a wrong pixel, 2 for an\n"
"invalid option.\n";

/**
 * struct gpu - a device, and what a picture needs of it
 * @props: properties of the device
 * @memory: its kinds of memory
 * @family: family of @queue
 * @image: the picture, and the one that it is copied to
 * @image_memory: memory of each
 * @buffer: the picture for the processor
 * @buffer_memory: its memory
 * @pixels: mapping of that
 */
struct gpu {
	VkInstance instance;
	VkPhysicalDevice physical;
	VkPhysicalDeviceProperties props;
	VkPhysicalDeviceMemoryProperties memory;
	uint32_t family;
	VkDevice device;
	VkQueue queue;
	VkCommandPool pool;
	VkCommandBuffer cmds;
	VkFence fence;
	VkImage image[2];
	VkDeviceMemory image_memory[2];
	VkBuffer buffer;
	VkDeviceMemory buffer_memory;
	const volatile uint32_t *pixels;
};

static bool failed(VkResult result, const char *what)
{
	if (result == VK_SUCCESS)
		return false;
	explain("%s failed: VkResult %d\n", what, result);
	return true;
}

#define TRY(call, what)				\
	do {					\
		if (failed(call, what))		\
			return -EIO;		\
	} while (0)

/* ---- the device ---- */

/* Find a queue that copies and clears pictures. */
static bool find_queue(struct gpu *g)
{
	VkQueueFamilyProperties family[16];
	uint32_t nr = 16;

	vkGetPhysicalDeviceQueueFamilyProperties(g->physical, &nr, family);
	for (g->family = 0; g->family < nr; g->family++)
		if (family[g->family].queueFlags & VK_QUEUE_GRAPHICS_BIT)
			return true;
	return false;
}

static int find_device(struct gpu *g, bool software)
{
	VkPhysicalDevice devices[16];
	uint32_t nr = 16;
	VkResult result = vkEnumeratePhysicalDevices(g->instance, &nr, devices);

	if (result != VK_INCOMPLETE)
		TRY(result, "vkEnumeratePhysicalDevices");
	for (uint32_t i = 0; i < nr; i++) {
		g->physical = devices[i];
		vkGetPhysicalDeviceProperties(g->physical, &g->props);
		/* A device of Venus has the type of the host's, and a name that says so. */
		if (!software && g->props.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU &&
		    !strstr(g->props.deviceName, "Virtio-GPU Venus"))
			continue;
		if (find_queue(g))
			return 0;
	}
	explain("no Vulkan device among %u; --software allows this system's processors\n", nr);
	return -ENODEV;
}

static int open_device(struct gpu *g, bool software)
{
	const VkApplicationInfo app = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = program_name,
		.apiVersion = VK_API_VERSION_1_1,
	};
	const VkInstanceCreateInfo instance = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app,
	};
	const float priority = 1;
	VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1,
		.pQueuePriorities = &priority,
	};
	const VkDeviceCreateInfo device = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
	};
	int ret;

	TRY(vkCreateInstance(&instance, NULL, &g->instance), "vkCreateInstance");
	ret = find_device(g, software);
	if (ret)
		return ret;
	queue.queueFamilyIndex = g->family;
	TRY(vkCreateDevice(g->physical, &device, NULL, &g->device), "vkCreateDevice");
	vkGetDeviceQueue(g->device, g->family, 0, &g->queue);
	vkGetPhysicalDeviceMemoryProperties(g->physical, &g->memory);
	return 0;
}

/* ---- the picture ---- */

static int allocate(struct gpu *g, const VkMemoryRequirements *need, VkMemoryPropertyFlags flags,
		    VkDeviceMemory *memory)
{
	VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = need->size,
	};

	for (uint32_t i = 0; i < g->memory.memoryTypeCount; i++) {
		if (!(need->memoryTypeBits & 1u << i) ||
		    (g->memory.memoryTypes[i].propertyFlags & flags) != flags)
			continue;
		info.memoryTypeIndex = i;
		TRY(vkAllocateMemory(g->device, &info, NULL, memory), "vkAllocateMemory");
		return 0;
	}
	explain("the device has no memory with the flags %#x\n", flags);
	return -ENODEV;
}

static int make_image(struct gpu *g, uint32_t size, unsigned int i)
{
	const VkImageCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D,
		.format = VK_FORMAT_R8G8B8A8_UINT, .extent = { size, size, 1 },
		.mipLevels = 1, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT,
		.tiling = VK_IMAGE_TILING_OPTIMAL,
		.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
	};
	VkMemoryRequirements need;
	int ret;

	TRY(vkCreateImage(g->device, &info, NULL, &g->image[i]), "vkCreateImage");
	vkGetImageMemoryRequirements(g->device, g->image[i], &need);
	ret = allocate(g, &need, 0, &g->image_memory[i]);
	if (ret)
		return ret;
	TRY(vkBindImageMemory(g->device, g->image[i], g->image_memory[i], 0),
	    "vkBindImageMemory");
	return 0;
}

static int make_buffer(struct gpu *g, uint32_t size)
{
	const VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = (VkDeviceSize)size * size * 4,
		.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT,
	};
	VkMemoryRequirements need;
	void *p;
	int ret;

	TRY(vkCreateBuffer(g->device, &info, NULL, &g->buffer), "vkCreateBuffer");
	vkGetBufferMemoryRequirements(g->device, g->buffer, &need);
	ret = allocate(g, &need, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
		       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, &g->buffer_memory);
	if (ret)
		return ret;
	TRY(vkBindBufferMemory(g->device, g->buffer, g->buffer_memory, 0),
	    "vkBindBufferMemory");
	TRY(vkMapMemory(g->device, g->buffer_memory, 0, VK_WHOLE_SIZE, 0, &p), "vkMapMemory");
	g->pixels = p;
	return 0;
}

static int make_commands(struct gpu *g)
{
	const VkCommandPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
		.queueFamilyIndex = g->family,
	};
	VkCommandBufferAllocateInfo cmds = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1,
	};
	const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };

	TRY(vkCreateCommandPool(g->device, &pool, NULL, &g->pool), "vkCreateCommandPool");
	cmds.commandPool = g->pool;
	TRY(vkAllocateCommandBuffers(g->device, &cmds, &g->cmds), "vkAllocateCommandBuffers");
	TRY(vkCreateFence(g->device, &fence, NULL, &g->fence), "vkCreateFence");
	return 0;
}

static int gpu_open(struct gpu *g, const struct options *o)
{
	int ret = open_device(g, o->software);

	for (unsigned int i = 0; i < 2 && !ret; i++)
		ret = make_image(g, o->size, i);
	if (!ret)
		ret = make_buffer(g, o->size);
	return ret ? ret : make_commands(g);
}

static void gpu_close(struct gpu *g)
{
	if (!g->instance)
		return;
	if (g->device) {
		vkDeviceWaitIdle(g->device);
		vkDestroyFence(g->device, g->fence, NULL);
		vkDestroyCommandPool(g->device, g->pool, NULL);
		vkDestroyBuffer(g->device, g->buffer, NULL);
		vkFreeMemory(g->device, g->buffer_memory, NULL);
		for (unsigned int i = 0; i < 2; i++) {
			vkDestroyImage(g->device, g->image[i], NULL);
			vkFreeMemory(g->device, g->image_memory[i], NULL);
		}
		vkDestroyDevice(g->device, NULL);
	}
	vkDestroyInstance(g->instance, NULL);
}

/* ---- pictures ---- */

/* Have all commands before see the results of those behind. */
static void barrier(struct gpu *g, VkPipelineStageFlags to, VkAccessFlags access)
{
	const VkMemoryBarrier b = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = access,
	};

	vkCmdPipelineBarrier(g->cmds, VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &b, 0, NULL, 0,
			     NULL);
}

static void prepare_image(struct gpu *g, VkImage image)
{
	const VkImageMemoryBarrier b = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
		.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
		.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED, .newLayout = VK_IMAGE_LAYOUT_GENERAL,
		.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
		.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .image = image,
		.subresourceRange = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 },
	};

	vkCmdPipelineBarrier(g->cmds, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
			     VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 1, &b);
}

static void copy(struct gpu *g, uint32_t size, unsigned int from)
{
	const VkImageCopy whole = {
		.srcSubresource = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 },
		.dstSubresource = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 },
		.extent = { size, size, 1 },
	};

	vkCmdCopyImage(g->cmds, g->image[from], VK_IMAGE_LAYOUT_GENERAL, g->image[!from],
		       VK_IMAGE_LAYOUT_GENERAL, 1, &whole);
	barrier(g, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT |
		VK_ACCESS_TRANSFER_WRITE_BIT);
}

static int record(struct gpu *g, const struct options *o, uint32_t colour)
{
	const VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};
	const VkClearColorValue value = {
		.uint32 = { colour & 0xff, colour >> 8 & 0xff, colour >> 16 & 0xff, colour >> 24 },
	};
	const VkImageSubresourceRange all = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 };
	const VkBufferImageCopy whole = {
		.imageSubresource = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 },
		.imageExtent = { o->size, o->size, 1 },
	};

	TRY(vkBeginCommandBuffer(g->cmds, &begin), "vkBeginCommandBuffer");
	vkCmdFillBuffer(g->cmds, g->buffer, 0, VK_WHOLE_SIZE, GUARD);
	prepare_image(g, g->image[0]);
	prepare_image(g, g->image[1]);
	vkCmdClearColorImage(g->cmds, g->image[0], VK_IMAGE_LAYOUT_GENERAL, &value, 1, &all);
	barrier(g, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT |
		VK_ACCESS_TRANSFER_WRITE_BIT);
	for (uint32_t i = 0; i < o->work; i++)
		copy(g, o->size, i % 2);
	vkCmdCopyImageToBuffer(g->cmds, g->image[o->work % 2], VK_IMAGE_LAYOUT_GENERAL, g->buffer,
			       1, &whole);
	barrier(g, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
	TRY(vkEndCommandBuffer(g->cmds), "vkEndCommandBuffer");
	return 0;
}

/* Draw a picture, and compare it: 0, or -EILSEQ for a wrong pixel. */
static int draw(struct gpu *g, const struct options *o, uint32_t colour)
{
	const VkSubmitInfo submit = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1,
		.pCommandBuffers = &g->cmds,
	};
	int ret = record(g, o, colour);

	if (ret)
		return ret;
	TRY(vkQueueSubmit(g->queue, 1, &submit, g->fence), "vkQueueSubmit");
	TRY(vkWaitForFences(g->device, 1, &g->fence, VK_TRUE, FENCE_NS), "vkWaitForFences");
	TRY(vkResetFences(g->device, 1, &g->fence), "vkResetFences");
	for (uint32_t i = 0; i < o->size * o->size; i++) {
		if (g->pixels[i] == colour)
			continue;
		explain("pixel (%u, %u) is %08x and must be %08x\n", i % o->size, i / o->size,
			g->pixels[i], colour);
		return -EILSEQ;
	}
	return 0;
}

static int run(struct gpu *g, const struct options *o)
{
	uint64_t start = now_ns(), since = start, due = start, frames = 0, before = 0, now;
	int ret = 0;

	while (!ret && !stop && frames < o->frames &&
	       (double)(now_ns() - start) < o->seconds * 1e9) {
		/* Each picture has another colour than the one before. */
		ret = draw(g, o, (uint32_t)(frames + 1) * 0x9e3779b1u);
		frames += !ret;
		if (o->fps > 0)
			pace(&due, o->fps);
		now = now_ns();
		if (now - since < 1000000000)
			continue;
		printf("vk name=%s t=%.3f frames=%llu fps=%.1f\n", o->name,
		       (double)(now - start) / 1e9, (unsigned long long)frames,
		       (double)(frames - before) * 1e9 / (double)(now - since));
		fflush(stdout);
		since = now;
		before = frames;
	}
	now = now_ns();
	printf("{\"name\": \"%s\", \"right\": %s, \"frames\": %llu, \"seconds\": %.3f, \"fps\": %.3f, \"device\": \"%s\"}\n",
	       o->name, ret ? "false" : "true", (unsigned long long)frames,
	       (double)(now - start) / 1e9, (double)frames * 1e9 / (double)(now - start),
	       g->props.deviceName);
	return ret;
}

int main(int argc, char **argv)
{
	struct options o = {
		.name = "vk", .size = 256, .work = 4, .frames = UINT64_MAX, .seconds = 1e12,
	};
	const struct cmdline_option options[] = {
		U32("size", &o.size, 1, 4096),
		U32("work", &o.work, 0, 100000),
		NUMBER("fps", &o.fps, 0.1, 10000, "a rate from 0.1 to 10000 pictures/s"),
		U64("frames", &o.frames, 1, 1e15, "a number from 1"),
		NUMBER("seconds", &o.seconds, 0.01, 1e9, "a time in seconds, above 0"),
		WORD("name", &o.name),
		FLAG("software", &o.software),
		{ 0 },
	};
	static struct gpu g;
	int ret = cmdline_parse(options, usage, argc, argv);

	if (ret)
		return ret < 0 ? 2 : 0;
	stop_on_signals();
	ret = gpu_open(&g, &o);
	if (!ret)
		ret = run(&g, &o);
	gpu_close(&g);
	return !!ret;
}
